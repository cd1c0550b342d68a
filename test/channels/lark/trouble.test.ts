// Lark with trouble: lost connections, wrong secrets, limits, lost answers, and events of any shape.

import { expect, test } from 'vitest';
import { sending } from '../../contract/channel.ts';
import { encodeFrame } from '../../support/lark-server/frames.ts';
import { answer, type Rig, refOf, startRig, textsSeen } from './rig.ts';

const NEW_MESSAGE = /^im\/v1\/messages/;

async function started(): Promise<Rig> {
  const rig = await startRig();
  rig.start();
  await rig.connected();
  return rig;
}

test('a connection that is lost is opened again and nothing is missed', async () => {
  await using rig = await started();
  rig.lark.dropConnections();
  await rig.host.until(({ statuses }) => statuses.at(-1)?.kind === 'degraded');
  rig.lark.say(rig.lark.person('Anna'), 'meanwhile');
  await rig.host.until((host) => host.texts().includes('meanwhile'));
  expect(rig.host.statuses.at(-1)?.kind).toBe('running');
  expect(rig.lark.connections).toBe(1);
});

test('a refused secret stops the channel with words for its owner', async () => {
  await using rig = await startRig({ appSecret: 'wrong-secret-1' });
  rig.start();
  expect(await rig.failure).toMatchObject({
    code: 'lark_credentials_refused',
    remedy: { kind: 'never' },
  });
  expect(rig.host.statuses.at(-1)).toMatchObject({ kind: 'stopped' });
  expect(rig.host.alerts).toHaveLength(1);
  expect(JSON.stringify([rig.host.statuses, rig.host.logged])).not.toContain('wrong-secret-1');
});

test('Lark out of reach is tried again with growing waits', async () => {
  await using rig = await startRig();
  const error = { kind: 'error', status: 503, code: 1 } as const;
  rig.lark.fault({ path: /^bot\/v3\/info$/, effect: error, times: 1 });
  rig.lark.fault({ path: /^endpoint$/, effect: { kind: 'drop', stage: 'before' }, times: 1 });
  rig.start();
  await rig.host.until(({ statuses }) => statuses.at(-1)?.kind === 'running');
  const waits = rig.host.statuses.filter(({ kind }) => kind === 'degraded');
  expect(waits).toHaveLength(2);
});

test('an app without a long connection stops with what to do', async () => {
  await using rig = await startRig();
  rig.lark.fault({ path: /^endpoint$/, effect: { kind: 'error', status: 200, code: 403 } });
  rig.start();
  expect(await rig.failure).toMatchObject({ code: 'lark_no_connection' });
});

test('too many programs of one app are told as such', async () => {
  await using rig = await startRig();
  const effect = { kind: 'error', status: 200, code: 1000040350 } as const;
  rig.lark.fault({ path: /^endpoint$/, effect });
  rig.start();
  const degraded = await rig.host.until(({ statuses }) =>
    statuses.find((status) => status.kind === 'degraded'),
  );
  expect(degraded).toMatchObject({ reason: expect.stringContaining('too many programs') });
});

test('stopping closes the connection and leaves no timer behind', async () => {
  await using rig = await started();
  await rig.stop();
  await rig.lark.until(() => rig.lark.connections === 0);
  const kinds = process.getActiveResourcesInfo();
  rig.start();
  await rig.connected();
  await rig.stop();
  await rig.lark.until(() => rig.lark.connections === 0);
  const count = (list: readonly string[]) => list.filter((kind) => kind === 'Timeout').length;
  expect(count(process.getActiveResourcesInfo())).toBeLessThanOrEqual(count(kinds));
});

test('an answer whose confirmation was lost stands in the chat once', async () => {
  await using rig = await started();
  const chat = rig.lark.direct(rig.lark.person('Anna'));
  rig.lark.fault({ method: 'POST', path: NEW_MESSAGE, effect: { kind: 'drop', stage: 'after' } });
  const message = answer(refOf(chat), 'Only once.');
  await expect(rig.channel.send(message, sending())).rejects.toMatchObject({
    certainty: 'unknown',
  });
  await rig.channel.send(message, sending({ attempt: 2, repeatsUnknown: true }));
  expect(textsSeen(rig.lark, chat)).toEqual(['Only once.']);
});

test('a repeat that Lark may not know any more says so', async () => {
  await using rig = await started();
  const chat = rig.lark.direct(rig.lark.person('Anna'));
  const message = answer(refOf(chat), 'After a crash.');
  await rig.channel.send(message, sending({ attempt: 2, repeatsUnknown: true }));
  expect(textsSeen(rig.lark, chat)[0]).toContain('sent again');
});

test.for([
  [429, 99991400],
  [400, 230020],
  [400, 11232],
] as const)('a limit (%i, %i) lets the message wait', async ([status, code]) => {
  await using rig = await started();
  const headers = { 'x-ogw-ratelimit-reset': '7' };
  const chat = refOf(rig.lark.direct(rig.lark.person('Anna')));
  const effect = { kind: 'error', status, code } as const;
  rig.lark.fault({ method: 'POST', path: NEW_MESSAGE, effect: { ...effect, headers } });
  await expect(rig.channel.send(answer(chat, 'x'), sending())).rejects.toMatchObject({
    certainty: 'not_sent',
    remedy: { kind: 'after', delayMs: 7000 },
  });
  rig.lark.fault({ method: 'POST', path: NEW_MESSAGE, effect });
  await expect(rig.channel.send(answer(chat, 'x'), sending())).rejects.toMatchObject({
    remedy: { kind: 'backoff' },
  });
});

test('a token that expired early is asked for anew', async () => {
  await using rig = await started();
  const chat = rig.lark.direct(rig.lark.person('Anna'));
  rig.lark.revokeTokens();
  await rig.channel.send(answer(refOf(chat), 'Still here.'), sending());
  expect(textsSeen(rig.lark, chat)).toEqual(['Still here.']);
});

test('a card Lark does not take goes out as plain text', async () => {
  await using rig = await started();
  const chat = rig.lark.direct(rig.lark.person('Anna'));
  const effect = { kind: 'error', status: 400, code: 230099 } as const;
  rig.lark.fault({ method: 'POST', path: NEW_MESSAGE, effect });
  await rig.channel.send(answer(refOf(chat), 'A **bold** word.'), sending());
  expect(textsSeen(rig.lark, chat)).toEqual(['A bold word.']);
});

test('in a group the answer stands below its question, and without it where that is gone', async () => {
  await using rig = await started();
  const group = rig.lark.group('Team');
  const id = rig.lark.say(rig.lark.person('Anna'), 'hey', { chat: group.id, mentionsBot: true });
  const { message } = await rig.host.until(({ entries }) => entries[0]);
  await rig.channel.send(answer(refOf(group), 'Yes?', { replyTo: message.id }), sending());
  expect(rig.lark.seen(group)[0]?.parent).toBe(id);
  rig.lark.recall(id);
  const late = answer(refOf(group), 'Late.', { id: 'turn/1' as never, replyTo: message.id });
  await rig.channel.send(late, sending());
  expect(rig.lark.seen(group)[1]?.parent).toBeUndefined();
});

test('what is said into a thread later stays in it, also by another process', async () => {
  await using rig = await started();
  const group = rig.lark.group('Forum', 'topic');
  const say = { chat: group.id, thread: 'omt_9', mentionsBot: true };
  rig.lark.say(rig.lark.person('Anna'), 'topic', say);
  const { message } = await rig.host.until(({ entries }) => entries[0]);
  await rig.stop();
  rig.start();
  await rig.lark.until(() => rig.lark.connections > 0);
  await rig.channel.send(answer(message.chat, 'News.'), sending());
  expect(rig.lark.seen(group)[0]).toMatchObject({ thread: 'omt_9' });
  const unknown = { ...message.chat, thread: 'omt_unknown' as never };
  await rig.channel.send(answer(unknown, 'Lost.', { id: 'turn/1' as never }), sending());
  expect(textsSeen(rig.lark, group)[1]).toContain('thread of this conversation is gone');
});

test('a sign of work is set and taken away, also by another process', async () => {
  await using rig = await started();
  const id = rig.lark.say(rig.lark.person('Anna'), 'work');
  const { message } = await rig.host.until(({ entries }) => entries[0]);
  const signal = AbortSignal.timeout(45_000);
  await rig.channel.reactions?.react(message.id, 'Typing', signal);
  expect(rig.lark.message(id).reactions).toMatchObject([{ type: 'Typing', by: 'bot' }]);
  await rig.stop();
  rig.start();
  await rig.channel.reactions?.react(message.id, undefined, signal);
  expect(rig.lark.message(id).reactions).toEqual([]);
});

test('200 broken events and frames of any bytes end in receipts, never in a crash', async () => {
  await using rig = await started();
  const anna = rig.lark.person('Anna');
  const types = ['im.message.receive_v1', 'card.action.trigger', 'im.message.recalled_v1'];
  const kinds = [...types, 'im.message.reaction.created_v1', 'im.chat.member.bot.added_v1'];
  const junk: readonly unknown[] = [
    null,
    0,
    '',
    [],
    {},
    '../x',
    { id: null },
    'x'.repeat(5000),
    -1e300,
  ];
  for (let index = 0; index < 200; index += 1) {
    const odd = junk[index % junk.length];
    const whole: Record<string, unknown> = {
      sender: { sender_id: { open_id: anna.openId }, sender_type: 'user' },
      message: {
        ...{ message_id: `om_broken${index}`, chat_id: rig.lark.direct(anna).id, chat_type: 'p2p' },
        ...{ message_type: 'post', content: '{"content":[[{"tag":"text"}]]}', create_time: odd },
        [['content', 'message_id', 'mentions', 'parent_id', 'message_type'][index % 5] ?? '']: odd,
      },
      ...{ context: { open_message_id: odd, open_chat_id: odd }, action: { value: odd } },
      ...{ message_id: odd, reaction_type: odd, operator_type: 'user', chat_id: odd },
      [['sender', 'message', 'none', 'none'][index % 4] ?? '']: odd,
    };
    rig.lark.event(kinds[index % kinds.length] ?? '', whole);
  }
  for (const bytes of [Buffer.from('junk'), Buffer.alloc(0), Buffer.alloc(500, 255)])
    rig.lark.raw(bytes);
  const headers = { type: 'event', message_id: 'm', sum: '-1', seq: '9' };
  rig.lark.raw(encodeFrame({ service: 7, method: 1, headers, payload: Buffer.from('{') }));
  await rig.lark.until(() => rig.lark.acknowledged.length === 200);
  rig.lark.say(anna, 'still there?');
  await rig.host.until((host) => host.texts().includes('still there?'));
});

test('no secret, ticket or text of a person is in what the channel logs', async () => {
  await using rig = await started();
  rig.lark.fault({ method: 'POST', path: NEW_MESSAGE, effect: { kind: 'drop', stage: 'before' } });
  const chat = refOf(rig.lark.direct(rig.lark.person('Anna')));
  await rig.channel.send(answer(chat, 'x'), sending()).catch(() => undefined);
  rig.host.beforeStore = async () => {
    throw new Error('no');
  };
  rig.lark.say(rig.lark.person('Anna'), 'words-of-a-person');
  await rig.lark.until(() => rig.lark.refusals > 0);
  rig.lark.raw(Buffer.from('{"words-of-a-person":1}'));
  rig.lark.dropConnections();
  await rig.host.until(({ statuses }) => statuses.at(-1)?.kind === 'degraded');
  const logged = JSON.stringify(rig.host.logged);
  expect(rig.host.logged.length).toBeGreaterThan(0);
  for (const secret of [...rig.lark.secrets, 'words-of-a-person'])
    expect(logged).not.toContain(secret);
});

test('a press of which Lark cannot say where it was is not taken for one in a group', async () => {
  await using rig = await started();
  const anna = rig.lark.person('Anna');
  const chat = rig.lark.direct(anna);
  const choices = [{ label: 'Yes', token: 'tok1' }];
  await rig.channel.send(answer(refOf(chat), 'May I?', { choices }), sending());
  const effect = { kind: 'error', status: 400, code: 99991672 } as const;
  rig.lark.fault({ path: /^im\/v1\/chats\//, effect });
  void rig.lark.press(anna, chat, 'Yes').catch(() => undefined);
  await rig.lark.until(() => rig.lark.refusals === 1);
  expect(rig.host.entries).toEqual([]);
  rig.lark.say(anna, 'hello');
  await rig.host.until(({ entries }) => entries.length === 1);
  rig.lark.redeliver();
  const pressed = await rig.host.until(({ entries }) => entries[1]);
  expect(pressed.message.press).toBe('tok1');
  expect(pressed.message.group).toBeUndefined();
});

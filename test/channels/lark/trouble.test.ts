// Lark with trouble: lost connections, wrong secrets, limits, lost answers, and events of any shape.

import { expect, test } from 'vitest';
import { messageId } from '../../../src/kernel/message/ids.ts';
import { sending } from '../../contract/channel.ts';
import { fileOf } from '../../contract/channel-files.ts';
import { PNG } from '../../contract/media.ts';
import { encodeFrame } from '../../support/lark-server/frames.ts';
import { createMovableClock } from '../../support/movable-clock.ts';
import { REDIRECTS, startElsewhere } from '../../support/redirector.ts';
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

test('a redirect takes neither a message nor a file nor the secret to another host', async () => {
  await using elsewhere = await startElsewhere();
  await using rig = await started();
  const headers = { location: `http://${elsewhere.host}/` };
  const redirect = (path: RegExp, status: number) =>
    rig.lark.fault({ path, effect: { kind: 'error', status, code: status, headers }, times: 1 });
  const chat = refOf(rig.lark.direct(rig.lark.person('Anna')));
  const attachments = [await fileOf(rig.host, PNG, { kind: 'image', name: 'dot.png' })];
  for (const status of REDIRECTS) {
    redirect(NEW_MESSAGE, status);
    const text = answer(chat, 'private', { id: messageId(`text-${status}`) });
    await expect(rig.channel.send(text, sending())).rejects.toThrow();
    redirect(/^im\/v1\/images/, status);
    const file = { ...answer(chat, ''), id: messageId(`file-${status}`), attachments };
    await expect(rig.channel.send(file, sending())).rejects.toThrow();
  }
  redirect(/^auth/, 307);
  rig.lark.revokeTokens();
  await expect(rig.channel.send(answer(chat, 'private'), sending())).rejects.toThrow();
  expect(elsewhere.connections).toBe(0);
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

test('an app without a bot stops with what to do', async () => {
  await using rig = await startRig();
  rig.lark.fault({ path: /^bot\/v3\/info$/, effect: { kind: 'error', status: 200, code: 11205 } });
  rig.start();
  expect(await rig.failure).toMatchObject({ code: 'lark_no_bot' });
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

test('an answer stays in its thread where the question was recalled, and its file follows it outside', async () => {
  await using rig = await started();
  const group = rig.lark.group('Team');
  const say = { chat: group.id, thread: 'omt_9', mentionsBot: true };
  const [first, question] = ['topic', 'and this?'].map((text) =>
    rig.lark.say(rig.lark.person('Anna'), text, say),
  );
  const { message } = await rig.host.until(({ entries }) => entries[1]);
  rig.lark.recall(question ?? '');
  const replyTo = message.id;
  await rig.channel.send(answer(message.chat, 'Yes.', { replyTo }), sending());
  expect(rig.lark.seen(group)[0]).toMatchObject({ parent: first, thread: 'omt_9' });
  rig.lark.recall(first ?? '');
  const list = { kind: 'document', name: 'list.csv' } as const;
  const attachments = [await fileOf(rig.host, Buffer.from('a;b'), list)];
  const late = { id: 'turn/1' as never, replyTo, attachments };
  await rig.channel.send(answer(message.chat, 'Here.', late), sending());
  expect(textsSeen(rig.lark, group)[1]).toContain('thread of this conversation is gone');
  expect(rig.lark.seen(group).map(({ type }) => type)).toEqual([
    'interactive',
    'interactive',
    'file',
  ]);
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

async function fetched(rig: Rig, ref: string): Promise<string> {
  const pieces: Uint8Array[] = [];
  const file = rig.channel.attachments?.fetch(ref, AbortSignal.timeout(45_000)) ?? [];
  for await (const piece of file) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

/** The reference of a file that somebody sent. */
async function sentFile(rig: Rig, content: string): Promise<string> {
  const file_key = rig.lark.store(Buffer.from(content));
  rig.lark.say(rig.lark.person('Anna'), '', { type: 'file', content: { file_key } });
  const [file] = await rig.host.until(({ entries }) => entries.at(-1)?.message.attachments);
  return file?.content.kind === 'remote' ? file.content.ref : '';
}

const RESOURCE = /\/resources\//;

test('a file is fetched with a new token where the old one expired early', async () => {
  await using rig = await started();
  const ref = await sentFile(rig, 'the report');
  rig.lark.revokeTokens();
  expect(await fetched(rig, ref)).toBe('the report');
  const expired = { kind: 'error', status: 200, code: 99991663 } as const;
  rig.lark.fault({ path: RESOURCE, effect: expired });
  expect(await fetched(rig, ref)).toBe('the report');
});

test('a file that people sent may be JSON itself', async () => {
  await using rig = await started();
  const json = JSON.stringify({ code: 1, msg: 'my own', data: 'x'.repeat(200_000) });
  expect(await fetched(rig, await sentFile(rig, json))).toBe(json);
});

test('a limit on fetching is waited out, and the next try may get the file', async () => {
  const clock = createMovableClock();
  await using rig = await startRig({}, clock);
  rig.start();
  await rig.connected();
  const ref = await sentFile(rig, 'the report');
  const effect = { kind: 'error', status: 429, code: 99991400 } as const;
  const headers = { 'x-ogw-ratelimit-reset': '7' };
  rig.lark.fault({ path: RESOURCE, effect: { ...effect, headers } });
  await rig.host.until(({ statuses }) => statuses.at(-1)?.kind === 'running');
  const timers = clock.pending;
  let isOver = false;
  const limited = fetched(rig, ref).finally(() => {
    isOver = true;
  });
  const refused = expect(limited).rejects.toMatchObject({ isFinal: false });
  await expect.poll(() => clock.pending, { timeout: 30_000 }).toBeGreaterThan(timers);
  expect(isOver).toBe(false);
  await clock.advance(7000);
  await refused;
  expect(await fetched(rig, ref)).toBe('the report');
});

test.for([
  [200, 234037, true, 'larger than the 100 MB'],
  [400, 234037, true, 'larger than the 100 MB'],
  [400, 234038, true, 'does not let files be copied'],
  [400, 234009, true, 'does not allow this app'],
  [400, 1500, false, 'did not deliver it'],
  [500, 2200, false, 'did not deliver it'],
  [400, 987_654, false, 'did not deliver it'],
] as const)('a file refused with (%i, %i) says why', async ([status, code, isFinal, words]) => {
  await using rig = await started();
  const ref = await sentFile(rig, 'x');
  rig.lark.fault({ path: RESOURCE, effect: { kind: 'error', status, code } });
  await expect(fetched(rig, ref)).rejects.toMatchObject({
    isFinal,
    reason: expect.stringContaining(words),
  });
});

test.for([
  [200, 1500, 'unknown'],
  [400, 1500, 'unknown'],
  [400, 5000, 'unknown'],
  [200, 55001, 'unknown'],
  [200, 987_654, 'not_sent'],
  [400, 987_654, 'not_sent'],
] as const)('a refusal that may pass (%i, %i) is tried again, not for ever', async (refusal) => {
  const [status, code, certainty] = refusal;
  await using rig = await started();
  const direct = rig.lark.direct(rig.lark.person('Anna'));
  const effect = { kind: 'error', status, code } as const;
  rig.lark.fault({ method: 'POST', path: NEW_MESSAGE, effect });
  const once = answer(refOf(direct), 'In the end.');
  await expect(rig.channel.send(once, sending())).rejects.toMatchObject({
    certainty,
    remedy: { kind: 'backoff' },
  });
  const repeatsUnknown = certainty === 'unknown';
  await rig.channel.send(once, sending({ attempt: 2, repeatsUnknown }));
  expect(textsSeen(rig.lark, direct)).toEqual(['In the end.']);
  rig.lark.fault({ method: 'POST', path: NEW_MESSAGE, effect, times: 50 });
  const never = answer(refOf(direct), 'Never.', { id: 'turn/1' as never });
  let tries = 0;
  const last = async () => {
    for (;;) {
      tries += 1;
      const error = await rig.channel.send(never, sending({ attempt: tries })).catch((one) => one);
      if (error.remedy.kind !== 'backoff') return error;
    }
  };
  expect(await last()).toMatchObject({ remedy: { kind: 'never' } });
  expect(tries).toBe(20);
});

test.for([
  [400, 230022],
  [400, 230027],
  [400, 230002],
  [200, 230053],
  [400, 99992402],
  [403, 987_654],
] as const)('a refusal for good (%i, %i) is not tried again', async ([status, code]) => {
  await using rig = await started();
  const direct = rig.lark.direct(rig.lark.person('Anna'));
  const effect = { kind: 'error', status, code } as const;
  rig.lark.fault({ method: 'POST', path: NEW_MESSAGE, effect });
  await expect(rig.channel.send(answer(refOf(direct), 'x'), sending())).rejects.toMatchObject({
    remedy: { kind: 'never' },
  });
});

test('a draft that becomes the answer is not said to be sent again', async () => {
  await using rig = await started();
  const direct = rig.lark.direct(rig.lark.person('Anna'));
  const signal = AbortSignal.timeout(45_000);
  const draft = await rig.channel.editing?.place(refOf(direct), 'Half of it', { signal });
  const context = sending({ attempt: 2, repeatsUnknown: true });
  const whole = { ...context, ...(draft === undefined ? {} : { draft }) };
  await rig.channel.send(answer(refOf(direct), 'All of it.'), whole);
  expect(textsSeen(rig.lark, direct)).toEqual(['All of it.']);
});

test.for([1, 120])('a dead line is noticed with a ping every %i s', async (pingSecs) => {
  const clock = createMovableClock();
  await using rig = await startRig({}, clock);
  rig.lark.pingSecs = pingSecs;
  rig.start();
  await rig.connected();
  await rig.host.until(({ statuses }) => statuses.at(-1)?.kind === 'running');
  await rig.lark.until(() => rig.lark.pings > 0);
  const isDegraded = () => rig.host.statuses.some(({ kind }) => kind === 'degraded');
  // A line on which nothing is to be said is no dead one.
  for (let look = 0; look < 3; look += 1) await clock.advance(30_000);
  expect(isDegraded()).toBe(false);
  if (pingSecs > 30) return;
  rig.lark.isDeaf = true;
  for (let look = 0; look < 6 && !isDegraded(); look += 1) {
    const heard = rig.lark.pings;
    await rig.lark.until(() => rig.lark.pings > heard);
    await clock.advance(30_000);
  }
  expect(isDegraded()).toBe(true);
});

test('Opus is sent as a voice message, whether spoken or sent as a file; other sound is a file', async () => {
  await using rig = await started();
  const direct = rig.lark.direct(rig.lark.person('Anna'));
  const page = (codec: string) => Buffer.from(`OggS${'\0'.repeat(24)}${codec}\x01`, 'latin1');
  const opus = await fileOf(rig.host, page('OpusHead'), {
    ...{ kind: 'audio', name: 'song.opus', mimeType: 'audio/ogg' },
  });
  const spoken = { ...opus, kind: 'voice', name: 'answer.ogg' } as const;
  const asDocument = { ...opus, kind: 'document' } as const;
  const vorbis = await fileOf(rig.host, page('\x01vorbis'), {
    ...{ kind: 'voice', name: 'song.ogg', mimeType: 'audio/ogg' },
  });
  const attachments = [opus, spoken, asDocument, vorbis];
  await rig.channel.send(answer(refOf(direct), '', { attachments }), sending());
  const types = rig.lark.seen(direct).map(({ type }) => type);
  expect(types).toEqual(['audio', 'audio', 'file', 'file']);
});

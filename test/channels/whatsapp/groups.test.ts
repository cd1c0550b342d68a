// Groups on WhatsApp, from the server to the host and back: the whole channel with real sessions.

import { describe, expect, it } from 'vitest';
import { chatId, DEFAULT_ACCOUNT, messageId } from '../../../src/kernel/message/ids.ts';
import type { OutboundMessage } from '../../../src/kernel/message/message.ts';
import { sending } from '../../contract/channel.ts';
import type { Contact, Group } from '../../support/whatsapp-server/contract.ts';
import { trustedWhatsAppServer } from '../../support/whatsapp-server/trusted.ts';
import { type LiveRig, startLiveRig } from './live-rig.ts';

const server = await trustedWhatsAppServer();

type World = AsyncDisposable & {
  readonly rig: LiveRig;
  readonly group: Group;
  readonly anna: Contact;
  readonly ben: Contact;
};

async function startWorld(): Promise<World> {
  const pacing = { chatPerMinute: 1000, accountPerMinute: 1000, minGapMs: 0, maxGapMs: 0 };
  const rig = await startLiveRig(server, { pacing });
  const anna = await server.contact(rig.phone, { name: 'Anna' });
  const ben = await server.contact(rig.phone, { name: 'Ben' });
  const group = await server.group(rig.phone, [anna, ben], 'Plans');
  return { rig, group, anna, ben, [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose]() };
}

const came = ({ rig }: World, count: number) =>
  rig.host.until(({ entries }) => entries.length >= count && entries.map(({ message }) => message));

const answerIn = (group: Group, id: string, markdown: string): OutboundMessage => ({
  id: messageId(id),
  chat: {
    channel: 'whatsapp' as OutboundMessage['chat']['channel'],
    account: DEFAULT_ACCOUNT,
    chat: chatId(group.jid),
  },
  markdown,
});

async function seen({ group }: World, member: Contact, text: string) {
  await expect.poll(() => group.seenBy(member).at(-1)?.text, { timeout: 45_000 }).toBe(text);
  return group.seenBy(member).at(-1)?.id ?? '';
}

describe('a message in a WhatsApp group', () => {
  it('is for the agent where it names the account, by number or by LID, and talk else', async () => {
    await using world = await startWorld();
    const { rig, group, anna, ben } = world;
    const { number, lid } = rig.phone;
    await group.says(anna, 'just us two');
    await group.says(anna, `hi @${ben.lid}`, { mentions: [`${ben.lid}@lid`] });
    await group.says(anna, `hi @${lid}`, { mentions: [`${lid}@lid`] });
    await group.says(ben, `@${number} /status`, { mentions: [`${number}@s.whatsapp.net`] });
    await group.says(ben, `@${number} I only write the digits`);
    await group.says(ben, `@youtube, @${number}?`, { mentions: [`${number}@s.whatsapp.net`] });
    const messages = await came(world, 6);
    expect(messages.map(({ addressing }) => addressing)).toEqual([
      'ambient',
      'ambient',
      'mention',
      'mention',
      'ambient',
      'mention',
    ]);
    expect(messages[5]?.text).toBe('@youtube, @you?');
    expect(messages[3]?.text).toBe('/status');
    expect(messages[2]?.text).toBe('hi @you');
    expect(messages[2]).toMatchObject({
      chat: { chat: group.jid },
      group: { ids: [group.jid] },
      sender: { name: 'Anna', verified: 'verified' },
    });
    const ids = [messages[2], messages[3]].map((message) =>
      message?.sender.kind === 'person' ? message.sender.id : '',
    );
    expect(new Set(ids).size).toBe(2);
  });

  it('is for the agent where it answers what the agent sent there, not what somebody forges', async () => {
    await using world = await startWorld();
    const { rig, group, anna, ben } = world;
    await rig.channel.send(answerIn(group, 'a/0', 'I am here'), sending());
    const id = await seen(world, anna, 'I am here');
    await seen(world, ben, 'I am here');
    const text = 'I am here';
    const ours = `${rig.phone.lid}@lid`;
    await group.says(anna, 'good', { quoting: { id, text, author: ours } });
    await group.says(ben, 'bad', { quoting: { id, text, author: `${anna.lid}@lid` } });
    await group.says(ben, 'ugly', { quoting: { id: '3EB0FORGED', text, author: ours } });
    const messages = await came(world, 3);
    expect(messages.map(({ addressing }) => addressing)).toEqual(['reply', 'ambient', 'ambient']);
    expect(messages[0]?.quoted).toEqual({ author: 'you', text, sentAs: id });
  });
});

describe('an answer in a WhatsApp group', () => {
  it('quotes its question in the first part alone, and disappears as the group’s messages do', async () => {
    await using world = await startWorld();
    const { rig, group, anna, ben } = world;
    const mine = `${rig.phone.lid}@lid`;
    const asked = await group.says(anna, `@${rig.phone.lid} when?`, { mentions: [mine] });
    const contextInfo = { expiration: 86_400 };
    await group.says(ben, 'where?', {
      message: { extendedTextMessage: { text: 'where?', contextInfo } },
    });
    const [question] = await came(world, 2);
    if (question === undefined) throw new Error('unreachable');
    const answer = { ...answerIn(group, 'q/0', `${'a'.repeat(4000)}b`), replyTo: question.id };
    const { signal } = new AbortController();
    const draft = await rig.channel.editing?.place(answer.chat, 'aa', { ...answer, signal });
    await rig.channel.send(answer, sending(draft && { draft }));
    await seen(world, ben, 'b');
    await rig.stop();
    await rig.start();
    await rig.channel.send(answerIn(group, 'q/1', 'a reminder'), sending());
    await seen(world, ben, 'a reminder');
    const contexts = group
      .seenBy(ben)
      .map(({ message }) => message.extendedTextMessage?.contextInfo)
      .map((one) => [one?.stanzaId || '', one?.expiration, one?.quotedMessage?.conversation]);
    expect(contexts).toEqual([
      [asked, 86_400, 'when?'],
      ['', 86_400, undefined],
      ['', 86_400, undefined],
    ]);
  });

  it('asks who is in it once, and again when somebody joined, who then reads it too', async () => {
    await using world = await startWorld();
    const { rig, group, anna, ben } = world;
    for (const n of [1, 2, 3]) {
      await rig.channel.send(answerIn(group, `b/${n}`, `text ${n}`), sending());
    }
    await seen(world, ben, 'text 3');
    expect(group.asked).toBe(1);
    const cleo = await server.contact(rig.phone, { name: 'Cleo' });
    await group.joined(cleo);
    await expect.poll(() => rig.phone.queued).toBe(0);
    await rig.channel.send(answerIn(group, 'b/4', 'text 4'), sending());
    for (const member of [anna, ben, cleo]) await seen(world, member, 'text 4');
    expect(group.asked).toBe(2);
  });

  it('is given up at once where the account was removed', async () => {
    await using world = await startWorld();
    const { rig, group, anna } = world;
    await rig.channel.send(answerIn(group, 'd/0', 'text'), sending());
    await seen(world, anna, 'text');
    await group.removesAccount();
    await expect.poll(() => rig.phone.queued).toBe(0);
    await expect(rig.channel.send(answerIn(group, 'd/1', 'late'), sending())).rejects.toMatchObject(
      { code: 'whatsapp_not_in_group', remedy: { kind: 'never' } },
    );
  });

  it('marks what was said there as read, and shows that it is typing', async () => {
    await using world = await startWorld();
    const { rig, group, anna, ben } = world;
    const first = await group.says(ben, 'talk');
    const second = await group.says(anna, `@${rig.phone.lid} hi`, {
      mentions: [`${rig.phone.lid}@lid`],
    });
    await came(world, 2);
    const answer = answerIn(group, 'c/0', 'hello');
    await rig.channel.typing?.show(answer.chat, new AbortController().signal);
    await expect.poll(() => anna.readIds).toContain(second);
    await expect.poll(() => ben.readIds).toContain(first);
    expect(anna.typing).toContain('composing');
  });
});

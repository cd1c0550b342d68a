// Groups at the door: what a message in them is taken for, and where answers go.

import { describe, expect, test } from 'vitest';
import { threadId } from '../../../src/kernel/message/ids.ts';
import { sending } from '../../contract/channel.ts';
import { ALICE, answer, chatOf, type Rig, seenBy, startRig } from './rig.ts';

const GROUP = -1_001_000_000_042;
const OTHER = -1_001_000_000_043;
const OLD = -4242;
const alice = { id: ALICE, first_name: 'Alice' };
const settings = { groups: [String(GROUP), String(OLD)] };

async function startInGroup(more: Parameters<Rig['start']>[0] = {}): Promise<Rig> {
  const rig = await startRig();
  rig.api.group(GROUP, { isForum: true });
  rig.start({ ...settings, ...more });
  return rig;
}

const came = (rig: Rig, count: number) =>
  rig.host.until(({ entries }) => entries.length >= count && entries);

const inGroup = (thread?: number) => ({
  ...chatOf(GROUP),
  ...(thread === undefined ? {} : { thread: threadId(String(thread)) }),
});

describe('a message in a group', () => {
  test.each([
    ['hello all', 'ambient'],
    ['@nano_sim_bot hello', 'mention'],
    ['hello @NANO_SIM_BOT', 'mention'],
    ['hello @nano_sim_bot2', 'ambient'],
    ['mail me at x@nano_sim_bot', 'ambient'],
    ['/status@nano_sim_bot', 'mention'],
    ['/status', 'ambient'],
    ['/status@other_bot @nano_sim_bot', 'ambient'],
  ])('%j is taken as %s', async (text, addressing) => {
    await using rig = await startInGroup();
    rig.api.say(alice, text, { chatId: GROUP });
    const [entry] = await came(rig, 1);
    expect(entry?.message).toMatchObject({
      addressing,
      text,
      chat: { chat: String(GROUP) },
      group: { ids: [String(GROUP)], title: 'Plans' },
      sender: { id: String(ALICE), name: 'Alice' },
    });
  });

  test('that answers the bot is for the bot, one that answers somebody else is not', async () => {
    await using rig = await startInGroup();
    await rig.channel.send(answer('I am here', { chat: inGroup() }), sending());
    const ours = await rig.api.nextMessage(GROUP);
    rig.api.say(alice, 'good', { chatId: GROUP, replyTo: ours });
    const theirs = rig.api.chat(GROUP).messages.at(-1);
    rig.api.say(alice, 'me too', { chatId: GROUP, ...(theirs && { replyTo: theirs }) });
    rig.api.say(alice, '/new', { chatId: GROUP, replyTo: ours });
    const entries = await came(rig, 3);
    expect(entries.map(({ message }) => message.addressing)).toEqual([
      'reply',
      'ambient',
      'ambient',
    ]);
  });

  test('by another bot is kept from the agent', async () => {
    await using rig = await startInGroup();
    const bot = { id: 99, first_name: 'Robot', is_bot: true };
    rig.api.say(bot, '@nano_sim_bot hello', { chatId: GROUP, extra: { from: bot } });
    await came(rig, 1);
    expect(rig.host.gates()).toEqual(['sender is a bot']);
  });

  test.each([
    ['a hidden admin', { id: GROUP, type: 'supergroup', title: 'Plans' }],
    ['a channel', { id: OTHER, type: 'channel', title: 'News' }],
  ])('of %s is refused unless that chat is listed', async (_name, sender_chat) => {
    const from = { id: 1087968824, first_name: 'Group', is_bot: true };
    const say = (rig: Rig, text: string) =>
      rig.api.say(alice, text, { chatId: GROUP, extra: { from, sender_chat } });
    await using rig = await startInGroup();
    say(rig, '@nano_sim_bot one');
    await came(rig, 1);
    expect(rig.host.gates()).toEqual(['sent in the name of a chat']);
    expect(rig.host.entries[0]?.message.sender).toMatchObject({ verified: 'unverified' });
    await rig.stop();
    rig.start({ ...settings, groupSenderChats: [String(sender_chat.id)] });
    say(rig, '@nano_sim_bot two');
    const entries = await came(rig, 2);
    expect(entries[1]).toMatchObject({
      kind: 'queue',
      message: { sender: { id: String(sender_chat.id), name: sender_chat.title } },
    });
  });

  test('knows its bot by name in the very first batch', async () => {
    await using rig = await startRig();
    rig.api.group(GROUP);
    rig.api.say(alice, '@nano_sim_bot hello', { chatId: GROUP });
    rig.start(settings);
    const [entry] = await came(rig, 1);
    expect(entry?.message.addressing).toBe('mention');
  });
});

describe('a topic', () => {
  test('is a thread of its own, and its answers and notices go there', async () => {
    await using rig = await startInGroup();
    const topic = rig.api.topic(GROUP);
    rig.api.say(alice, '@nano_sim_bot hello', { chatId: GROUP, thread: topic });
    const [entry] = await came(rig, 1);
    expect(entry?.message).toMatchObject({
      chat: { thread: String(topic) },
      addressing: 'mention',
    });
    expect(entry?.message.quoted).toBeUndefined();
    const signal = new AbortController().signal;
    await rig.channel.typing?.show(inGroup(topic), signal);
    const replyTo = entry?.message.id;
    const reply = answer('here', { chat: inGroup(topic), ...(replyTo && { replyTo }) });
    await rig.channel.send(reply, sending());
    const chat = rig.api.chat(GROUP);
    expect(chat.actions).toMatchObject([{ thread: topic }]);
    expect(chat.messages.at(-1)).toMatchObject({
      text: 'here',
      thread: topic,
      replyTo: chat.messages[0]?.id,
    });
  });

  test('that is gone sends the answer to the same group, which says so, and to no other topic', async () => {
    await using rig = await startInGroup();
    const [gone, other] = [rig.api.topic(GROUP), rig.api.topic(GROUP)];
    rig.api.removeTopic(GROUP, gone);
    await rig.channel.send(answer('late answer', { chat: inGroup(gone) }), sending());
    const [message] = rig.api.chat(GROUP).messages;
    expect(message).toMatchObject({ thread: undefined });
    expect(message?.text).toMatch(/topic of this conversation is gone[\s\S]*late answer/);
    expect(rig.api.chat(GROUP).messages.filter(({ thread }) => thread === other)).toEqual([]);
  });
});

describe('a group that becomes a supergroup', () => {
  test('keeps its conversation and its listing, also after a restart; the owner is told', async () => {
    await using rig = await startInGroup();
    rig.api.group(OLD, { type: 'group' });
    rig.api.say(alice, '@nano_sim_bot before', { chatId: OLD });
    await came(rig, 1);
    rig.api.migrate(OLD, GROUP - 7, true);
    rig.api.say(alice, '@nano_sim_bot after', { chatId: GROUP - 7 });
    const entries = await came(rig, 4);
    const [before, after] = [entries[0]?.message, entries[3]?.message];
    expect(after?.text).toContain('after');
    expect(after?.chat).toEqual(before?.chat);
    expect(after?.group?.ids).toEqual([String(OLD), String(GROUP - 7)]);
    expect(rig.host.told).toEqual([expect.stringContaining(String(GROUP - 7))]);
    await rig.stop();
    rig.start(settings);
    rig.api.say(alice, '@nano_sim_bot again', { chatId: GROUP - 7 });
    expect((await came(rig, 5))[4]?.message.chat).toEqual(before?.chat);
    await rig.channel.send(answer('to the new one', { chat: chatOf(OLD) }), sending());
    expect(seenBy(rig.api, GROUP - 7)).toEqual(['to the new one']);
  });

  test('is followed when only the refusal of an answer tells it', async () => {
    await using rig = await startInGroup();
    rig.api.group(OLD, { type: 'group' });
    rig.api.migrate(OLD, GROUP - 7, false);
    await rig.channel.send(answer('hello', { chat: chatOf(OLD) }), sending());
    await rig.channel.send(answer('again', { chat: chatOf(OLD) }), sending());
    expect(seenBy(rig.api, GROUP - 7)).toEqual(['hello', 'again']);
    const toOld = rig.api.calls.filter(({ payload }) => payload['chat_id'] === OLD);
    expect(toOld).toHaveLength(1);
    expect(rig.host.told).toHaveLength(1);
  });

  test('shows the final text in the new group where its draft stayed in the old one', async () => {
    await using rig = await startInGroup();
    rig.api.group(OLD, { type: 'group' });
    const { signal } = new AbortController();
    const draft = await rig.channel.editing?.place(chatOf(OLD), 'beg', { signal });
    rig.api.migrate(OLD, GROUP - 7, false);
    const context = sending(draft === undefined ? {} : { draft });
    await rig.channel.send(answer('begin and end', { chat: chatOf(OLD) }), context);
    expect(seenBy(rig.api, GROUP - 7)).toEqual(['begin and end']);
  });
});

describe('the bot in a new group', () => {
  test('tells its owner the id and how to list it, and says nothing there', async () => {
    await using rig = await startInGroup();
    rig.api.group(OTHER, { title: 'Evil `x` [link](http://evil)' });
    rig.api.addBot(OTHER, alice);
    rig.api.addBot(GROUP, alice);
    await came(rig, 2);
    expect(rig.host.told).toHaveLength(1);
    expect(rig.host.told[0]).toMatch(
      /^Alice added me to .*-1001000000043.*channels\.telegram\.groups/,
    );
    expect(rig.host.told[0]).not.toContain('[link]');
    expect(rig.api.chat(OTHER).messages).toEqual([]);
  });
});

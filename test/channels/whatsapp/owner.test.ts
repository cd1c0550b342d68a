// The account's owner as a person in their own chats: what they type by hand on the phone, and what
// they write to themself.

import { describe, expect, it } from 'vitest';
import { chatId } from '../../../src/kernel/message/ids.ts';
import type { InboundMessage } from '../../../src/kernel/message/message.ts';
import { HOUR_MS, type InboxRig, OWN, openInboxRig } from './inbox-rig.ts';

const NUMBER = '4915112345@s.whatsapp.net';
const LID = '777@lid';
const ALICE = { chat: LID, alt: NUMBER, name: 'Alice' };
const OWN_JID = `${OWN.number}@s.whatsapp.net`;
const OWN_LID = `${OWN.lid}@lid`;

const messagesOf = ({ host }: InboxRig): readonly InboundMessage[] =>
  host.entries.map(({ message }) => message);

describe('what the owner types by hand', () => {
  const byHand = { chat: LID, alt: NUMBER, fromMe: true, text: 'me here' };

  it('makes the agent silent in that chat for a while, also after a restart', async () => {
    await using rig = await openInboxRig({ ownerPauseMins: 30 });
    const chat = chatId('+4915112345');
    await rig.put(byHand);
    await rig.drained();
    expect(await rig.inbox.isPaused(chat)).toBe(true);
    await rig.restart();
    await rig.put({ ...ALICE, text: 'for the owner' }, { chat: '888@lid', text: 'for the agent' });
    await rig.drained();
    expect(rig.host.gates()).toEqual(['the owner answers here']);
    expect(rig.host.texts()).toEqual(['for the agent']);
    await rig.clock.advance(20 * 60_000);
    await rig.put(byHand);
    await rig.drained();
    await rig.clock.advance(20 * 60_000);
    expect(await rig.inbox.isPaused(chat)).toBe(true);
    await rig.clock.advance(11 * 60_000);
    expect(await rig.inbox.isPaused(chat)).toBe(false);
    await rig.put({ ...ALICE, text: 'again' });
    await rig.drained();
    expect(rig.host.texts()).toEqual(['for the agent', 'again']);
  });

  it('answers what was asked before, while we were offline', async () => {
    await using rig = await openInboxRig();
    await rig.put(
      { ...ALICE, text: 'asked', ago: 9 * HOUR_MS },
      { ...byHand, ago: 8 * HOUR_MS },
      { ...ALICE, text: 'later', ago: 7 * HOUR_MS },
    );
    await rig.drained();
    expect(rig.host.gates()).toEqual(['the owner answers here']);
    expect(rig.host.texts()).toEqual(['later']);
    expect(await rig.inbox.isPaused(chatId('+4915112345'))).toBe(false);
  });

  it('is not what the agent sent itself, nor a reaction', async () => {
    await using rig = await openInboxRig();
    rig.ours.add('OURS');
    await rig.put(
      { ...byHand, id: 'OURS' },
      { ...byHand, message: { reactionMessage: { text: '👍' } } },
      { ...ALICE, text: 'hi' },
    );
    await rig.drained();
    expect(rig.host.texts()).toEqual(['hi']);
  });

  it('does not silence the agent where the pause is 0', async () => {
    await using rig = await openInboxRig({ ownerPauseMins: 0 });
    await rig.put({ ...ALICE, text: 'hi', ago: 10 }, byHand);
    await rig.drained();
    expect(rig.host.texts()).toEqual(['hi']);
    expect(await rig.inbox.isPaused(chatId('+4915112345'))).toBe(false);
  });

  it('counts also where what was noted before cannot be read', async () => {
    await using rig = await openInboxRig();
    await rig.state.set('pause/+4915112345', 'x');
    await rig.put(byHand);
    await rig.drained();
    expect(await rig.inbox.isPaused(chatId('+4915112345'))).toBe(true);
  });

  it('counts for the chat under all names it ever had', async () => {
    await using rig = await openInboxRig();
    await rig.put({ chat: LID, fromMe: true });
    await rig.drained();
    await rig.clock.advance(1000);
    await rig.put({ chat: NUMBER });
    await rig.drained();
    await rig.put({ chat: NUMBER, alt: LID, text: 'joined' });
    await rig.drained();
    expect(rig.host.gates()).toEqual(['the owner answers here']);
    expect(await rig.inbox.isPaused(chatId('+4915112345'))).toBe(true);
  });
});

describe('the chat of the owner with themself', () => {
  const note = { chat: OWN_JID, fromMe: true, text: 'remember' };

  it('is the owner’s voice where it is switched on, without echo', async () => {
    await using rig = await openInboxRig({ selfChat: true });
    rig.ours.add('ANSWER');
    await rig.put(note, { ...note, id: 'ANSWER', text: 'an answer' }, { ...note, chat: OWN_LID });
    await rig.drained();
    expect(rig.host.entries).toHaveLength(2);
    expect(messagesOf(rig)[0]).toMatchObject({
      chat: { chat: 'self' },
      sender: { id: 'self', alsoKnownAs: ['+4917000000', '90000@lid'], verified: 'verified' },
      addressing: 'direct',
      text: 'remember',
    });
    expect(await rig.people.addressOf(chatId('self'))).toBe(OWN_LID);
    expect(await rig.inbox.isPaused(chatId('self'))).toBe(false);
  });

  it('is nobody’s business where it is not', async () => {
    await using rig = await openInboxRig();
    await rig.put(note);
    await rig.drained();
    expect(rig.host.entries).toEqual([]);
  });

  it('cannot be entered by somebody else', async () => {
    await using rig = await openInboxRig({ selfChat: true });
    await rig.put({ chat: OWN_JID, fromMe: false }, { chat: LID, alt: OWN_JID });
    await rig.drained();
    expect(rig.host.gates()).toEqual(['sender not readable']);
    expect(messagesOf(rig).at(-1)).toMatchObject({
      chat: { chat: '777@lid' },
      sender: { id: '777@lid' },
    });
    expect(messagesOf(rig).at(-1)?.sender).toMatchObject({ alsoKnownAs: undefined });
  });
});

// Stored messages on their way to the bus: order, people, gates, the owner's own words.

import type { proto, WAMessageKey } from '@whiskeysockets/baileys';
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

describe('a stored message', () => {
  it('becomes a question of a verified person, and its row goes', async () => {
    await using rig = await openInboxRig();
    const [id] = await rig.put({ ...ALICE, text: 'hi', ago: 1000 });
    await rig.drained();
    expect(rig.host.entries).toEqual([
      {
        kind: 'queue',
        message: {
          id: `whatsapp:default:+4915112345/${id}/+4915112345`,
          chat: { channel: 'whatsapp', account: 'default', chat: '+4915112345' },
          sender: {
            kind: 'person',
            id: '+4915112345',
            name: 'Alice',
            verified: 'verified',
            alsoKnownAs: ['777@lid'],
          },
          addressing: 'direct',
          text: 'hi',
          sentAt: expect.any(Number),
          receivedAt: expect.any(Number),
        },
      },
    ]);
    expect(await rig.ledger.list(1)).toEqual([]);
  });

  it('stays in the ledger until the bus has it', async () => {
    await using rig = await openInboxRig();
    const stored: number[] = [];
    rig.host.beforeStore = async () => void stored.push((await rig.ledger.list(9)).length);
    await rig.put({ ...ALICE }, { ...ALICE });
    await rig.drained();
    expect(stored).toEqual([2]);
  });

  it('that comes again is known, also when it was handed over before a crash', async () => {
    await using rig = await openInboxRig();
    await rig.put({ ...ALICE, id: 'A' });
    await rig.drained();
    await rig.restart();
    await rig.put({ ...ALICE, id: 'A' }, { chat: NUMBER, id: 'A' }, { chat: '777:3@lid', id: 'A' });
    await rig.drained();
    expect(rig.host.entries).toHaveLength(1);
    expect(rig.host.duplicates).toBe(3);
  });

  it('may have the id of somebody else’s', async () => {
    await using rig = await openInboxRig();
    await rig.put({ ...ALICE, id: 'A/B%' }, { chat: '888@lid', id: 'A/B%' });
    await rig.drained();
    expect(rig.host.entries).toHaveLength(2);
  });

  it('of any shape leaves the ledger', async () => {
    await using rig = await openInboxRig();
    await rig.put(
      { chat: 'x@lid@s.whatsapp.net', text: 'who?' },
      { chat: 'status@broadcast', participant: LID },
      { chat: '1234@newsletter' },
      { chat: '1234@g.us' },
      { chat: '1234@broadcast', participant: LID, text: 'to many' },
      { ...ALICE, message: { reactionMessage: { text: '👍' } } },
      { ...ALICE, message: { editedMessage: { message: { conversation: 'better' } } } },
      { ...ALICE, text: 'after all that' },
    );
    await rig.drained();
    expect(rig.host.texts()).toEqual(['after all that']);
    expect(rig.host.gates()).toEqual([
      'sender not readable',
      'sender not readable',
      'sent to a list of people',
      'nothing to read',
      'edited',
    ]);
  });

  it('of a group is ambient talk of its author', async () => {
    await using rig = await openInboxRig();
    await rig.put({ ...ALICE });
    await rig.put({ chat: '1234@g.us', participant: '777:4@lid', id: 'G', name: 'Alice' });
    await rig.put({ chat: '1234@g.us', participant: OWN_LID, fromMe: true });
    await rig.drained();
    expect(messagesOf(rig)[1]).toMatchObject({
      id: 'whatsapp:default:1234@g.us/G/+4915112345',
      chat: { chat: '1234@g.us' },
      sender: { id: '+4915112345', alsoKnownAs: ['777@lid'] },
      addressing: 'ambient',
    });
    expect(rig.host.entries).toHaveLength(2);
  });

  it('of an album in a group is called for with all its parts, also over a restart', async () => {
    await using rig = await openInboxRig();
    const group = '1234@g.us';
    const part = (id: string, caption = '') => ({
      ...{ chat: group, participant: '777@lid', id },
      message: {
        imageMessage: { caption, contextInfo: { mentionedJid: caption === '' ? [] : [OWN_LID] } },
        messageContextInfo: {
          messageAssociation: { associationType: 1, parentMessageKey: { id: 'ALBUM' } },
        },
      } as unknown as proto.IMessage,
    });
    await rig.put(part('ONE'));
    await rig.clock.advance(1000);
    await rig.put({ ...ALICE, id: 'PRIVATE' }, { chat: group, participant: '888@lid', id: 'TALK' });
    await rig.clock.advance(400);
    expect(messagesOf(rig).map(({ id }) => id)).toEqual([expect.stringContaining('PRIVATE')]);
    await rig.restart();
    await rig.put(part('TWO', 'what is this?'));
    await rig.clock.advance(1000);
    await rig.put(part('THREE'));
    await rig.drained();
    await rig.put(part('LATE'));
    await rig.drained();
    const inGroup = messagesOf(rig).filter(({ group: place }) => place !== undefined);
    const told = inGroup.map(({ id, addressing }) => [id.split('/')[1], addressing]);
    expect(told).toEqual([
      ['ONE', 'mention'],
      ['TALK', 'ambient'],
      ['TWO', 'mention'],
      ['THREE', 'mention'],
      ['LATE', 'mention'],
    ]);
  });

  it('says what it quotes, and which message that is', async () => {
    await using rig = await openInboxRig();
    rig.ours.add('OURS');
    const quoting = (stanzaId: string, participant: string) => ({
      extendedTextMessage: {
        text: 'this',
        contextInfo: { stanzaId, participant, quotedMessage: { conversation: 'that' } },
      },
    });
    await rig.put(
      { ...ALICE, message: quoting('OURS', OWN_LID) },
      { ...ALICE, message: quoting('HERS', LID) },
      { ...ALICE, message: quoting('BY-HAND', OWN_JID) },
    );
    await rig.drained();
    const chat = 'whatsapp:default:+4915112345';
    expect(messagesOf(rig).map(({ quoted, replyTo }) => ({ quoted, replyTo }))).toEqual([
      {
        quoted: { author: 'you', text: 'that', sentAs: 'OURS' },
        replyTo: `${chat}/OURS/self`,
      },
      { quoted: { author: 'Alice', text: 'that' }, replyTo: `${chat}/HERS/+4915112345` },
      { quoted: { text: 'that' }, replyTo: undefined },
    ]);
  });
});

describe('order', () => {
  it('is the server’s after being offline, and nothing is taken before all of it is here', async () => {
    await using rig = await openInboxRig();
    rig.catchingUp(true);
    await rig.put({ ...ALICE, text: '3', ago: 1000 }, { ...ALICE, text: '1', ago: 9000 });
    await rig.clock.advance(10_000);
    expect(rig.host.entries).toEqual([]);
    await rig.put({ ...ALICE, text: '2', ago: 12_000 }, { ...ALICE, text: '4', ago: 11_000 });
    rig.catchingUp(false);
    await rig.drained();
    expect(rig.host.texts()).toEqual(['1', '2', '3', '4']);
  });

  it('waits when the connection is lost and made again meanwhile', async () => {
    await using rig = await openInboxRig();
    await rig.put({ ...ALICE, text: 'second', ago: 0 });
    await rig.clock.advance(30);
    rig.catchingUp(true);
    await rig.clock.advance(5000);
    await rig.put({ ...ALICE, text: 'first', ago: 9000 });
    rig.catchingUp(false);
    await rig.drained();
    expect(rig.host.texts()).toEqual(['first', 'second']);
  });

  it('is arrival where the server’s seconds are the same', async () => {
    await using rig = await openInboxRig();
    await rig.put(...['a', 'b', 'c'].map((text) => ({ ...ALICE, text, ago: 1000 })));
    await rig.drained();
    expect(rig.host.texts()).toEqual(['a', 'b', 'c']);
  });

  it('is put right where a live message was overtaken by a later one', async () => {
    await using rig = await openInboxRig();
    await rig.put({ ...ALICE, text: 'second', ago: 0 });
    await rig.clock.advance(40);
    await rig.put({ ...ALICE, text: 'first', ago: 2000 });
    await rig.drained();
    expect(rig.host.texts()).toEqual(['first', 'second']);
  });

  it('holds across more messages than are read at once', async () => {
    await using rig = await openInboxRig();
    rig.catchingUp(true);
    const texts = Array.from({ length: 900 }, (_, index) => String(index));
    const arriving = texts.map((text, index) => ({
      ...ALICE,
      text,
      ago: 2_000_000 - index * 1000,
    }));
    const late = arriving.slice(250, 251);
    await rig.put(...arriving.slice(0, 250), ...arriving.slice(251, 440), ...late);
    await rig.put(...arriving.slice(440));
    rig.catchingUp(false);
    await rig.drained();
    expect(rig.host.texts()).toEqual(texts);
  });
});

describe('a person under several addresses', () => {
  it('has one chat before and after the number is known, and is let in by either id', async () => {
    await using rig = await openInboxRig({ allowFrom: ['+4915112345'] });
    await rig.put({ chat: LID }, { chat: '777:12@lid' });
    await rig.drained();
    await rig.clock.advance(1000);
    await rig.put(
      { chat: NUMBER, alt: LID },
      { chat: '4915112345:2@s.whatsapp.net' },
      { chat: LID },
    );
    await rig.drained();
    expect(new Set(messagesOf(rig).map(({ chat }) => chat.chat))).toEqual(new Set(['777@lid']));
    const senders = messagesOf(rig).map(({ sender }) => sender);
    expect(senders[1]).toMatchObject({ id: '777@lid' });
    for (const sender of senders.slice(2)) {
      expect(sender).toMatchObject({ id: '+4915112345', alsoKnownAs: ['777@lid'] });
    }
  });

  it('is known by the library’s stored rows', async () => {
    await using rig = await openInboxRig();
    rig.mappings.set('777_reverse', '4915112345');
    await rig.put({ chat: LID });
    await rig.drained();
    expect(messagesOf(rig)[0]?.sender).toMatchObject({ id: '+4915112345' });
  });

  it('is judged by what the last message of the batch tells', async () => {
    await using rig = await openInboxRig();
    await rig.put({ chat: NUMBER });
    await rig.drained();
    await rig.clock.advance(5000);
    await rig.put({ chat: LID, text: 'early' }, { chat: LID, alt: NUMBER, text: 'late' });
    await rig.drained();
    expect(messagesOf(rig).map(({ chat }) => chat.chat)).toEqual(Array(3).fill('+4915112345'));
    expect(messagesOf(rig)[1]?.sender).toMatchObject({ id: '+4915112345' });
  });

  it('does not get an answer twice when its chats were joined since', async () => {
    await using rig = await openInboxRig();
    await rig.put({ chat: LID, id: 'L' });
    await rig.drained();
    await rig.clock.advance(5000);
    await rig.put({ chat: NUMBER, id: 'N' });
    await rig.drained();
    await rig.clock.advance(5000);
    await rig.put({ chat: NUMBER, alt: LID, id: 'J' });
    await rig.drained();
    await rig.put({ chat: LID, id: 'L', ago: 10_200 }, { chat: NUMBER, id: 'N', ago: 5200 });
    await rig.drained();
    expect(rig.host.entries).toHaveLength(3);
    expect(rig.host.duplicates).toBe(2);
  });

  it('whose number nobody knows is told of once, with the command that lets them in', async () => {
    await using rig = await openInboxRig({ allowFrom: ['0049 170/11111'] });
    await rig.put({ chat: '888@lid', text: '/start 1234-5678' });
    await rig.put({ chat: LID, name: 'Bob' }, { chat: LID, name: 'Bob' });
    await rig.drained();
    await rig.restart();
    await rig.put({ chat: LID, name: 'Bob' });
    await rig.drained();
    expect(rig.host.alerts).toEqual([
      expect.stringContaining(
        '"Bob" (777@lid) wrote, but WhatsApp does not say their phone number',
      ),
    ]);
    expect(rig.host.alerts[0]).toMatch(/nanobot pair approve whatsapp 777@lid$/);
  });

  it('who was let in by hand is not told of', async () => {
    await using rig = await openInboxRig({ allowFrom: ['+4917011111'] });
    rig.approved.add(LID);
    await rig.put({ chat: LID });
    await rig.drained();
    expect(rig.host.alerts).toEqual([]);
  });

  it.each([[['*']], [['777@lid', '+4917011111']], [['888@lid']], [[]]])(
    'is not told of where the allow list %j needs no number',
    async (allowFrom) => {
      await using rig = await openInboxRig({ allowFrom });
      await rig.put({ chat: LID });
      await rig.drained();
      expect(rig.host.alerts).toEqual([]);
    },
  );
});

describe('a person whose stored row is damaged', () => {
  it('stops nobody’s messages, their own neither', async () => {
    await using rig = await openInboxRig();
    const bob = { chat: '888@lid', alt: '33600000000@s.whatsapp.net', name: 'Bob' };
    await rig.put({ ...ALICE, text: 'a1' }, { ...bob, text: 'b1' });
    await rig.drained();
    await rig.state.set('person/chat/+4915112345', '{"chat":"+49');
    await rig.restart();
    await rig.put({ ...ALICE, text: 'a2' }, { ...bob, text: 'b2' }, { ...ALICE, text: 'a3' });
    await rig.drained();
    const later = messagesOf(rig).slice(2);
    expect(later.map(({ text }) => text).toSorted()).toEqual(['a2', 'a3', 'b2']);
    const chatOf = (word: string) => later.find(({ text }) => text === word)?.chat.chat;
    expect(chatOf('b2')).toBe('+33600000000');
    expect(chatOf('a3')).toBe(chatOf('a2'));
    expect(rig.troubles.filter((trouble) => trouble !== undefined)).toEqual([]);
    expect(await rig.ledger.list(1)).toEqual([]);
  });
});

describe('old messages', () => {
  it('replayed by the hundreds are recorded and never answered', async () => {
    await using rig = await openInboxRig({ maxAgeHours: 72 });
    const old = Array.from({ length: 500 }, (_, index) => ({
      ...ALICE,
      text: `old ${index}`,
      ago: 73 * HOUR_MS + index,
    }));
    await rig.put(...old, { ...ALICE, text: 'yesterday', ago: 24 * HOUR_MS });
    await rig.drained();
    expect(rig.host.texts()).toEqual(['yesterday']);
    expect(rig.host.gates()).toEqual(Array(500).fill('too old'));
  });
});

describe('a full queue', () => {
  it('keeps the messages on disk, says so, and goes on by itself', async () => {
    await using rig = await openInboxRig();
    rig.host.isFull = true;
    await rig.put({ ...ALICE, text: 'one' }, { ...ALICE, text: 'two' });
    await rig.clock.advance(20_000);
    expect(rig.troubles.at(-1)).toBe('the queue is full; received messages wait on disk');
    expect(await rig.ledger.list(9)).toHaveLength(2);
    rig.host.isFull = false;
    await rig.drained();
    expect(rig.host.texts()).toEqual(['one', 'two']);
    await rig.put({ ...ALICE, text: 'three' });
    await rig.drained();
    expect(rig.troubles.filter((one) => one === undefined)).toHaveLength(1);
  });

  it('of one chat does not hold up the others, and keeps that chat in order', async () => {
    await using rig = await openInboxRig();
    rig.host.beforeStore = async (batch) => {
      rig.host.isFull = batch.some(({ message }) => message.chat.chat === '888@lid');
    };
    const loud = Array.from({ length: 900 }, (_, index) => ({
      chat: '888@lid',
      text: `n${index}`,
    }));
    await rig.put(...loud, { ...ALICE, text: 'quiet one' });
    await rig.clock.advance(3000);
    expect(rig.host.texts()).toEqual(['quiet one']);
    rig.host.beforeStore = undefined;
    rig.host.isFull = false;
    await rig.drained();
    expect(rig.host.texts()).toEqual(['quiet one', ...loud.map(({ text }) => text)]);
  });
});

it('keeps a chat in order whose queue has room again while others are handed over', async () => {
  await using rig = await openInboxRig();
  const tries: number[] = [];
  rig.host.beforeStore = async (batch) => {
    tries.push(batch.length);
    rig.host.isFull = tries.length <= 2;
  };
  const texts = Array.from({ length: 150 }, (_, index) => `n${index}`);
  await rig.put(...texts.map((text) => ({ ...ALICE, text })), { chat: '888@lid', text: 'other' });
  await rig.drained();
  expect(tries.slice(0, 3)).toEqual([100, 100, 1]);
  expect(rig.host.texts()).toEqual(['other', ...texts]);
});

describe('what is not marked as read yet', () => {
  it('is given out once per chat, and not what the owner read on the phone', async () => {
    await using rig = await openInboxRig();
    const [one, two] = await rig.put({ ...ALICE }, { ...ALICE });
    const [, inGroup] = await rig.put({ chat: '888@lid' }, { chat: '1@g.us', participant: LID });
    await rig.drained();
    const keys = await rig.inbox.takeUnread(chatId('+4915112345'));
    expect(keys).toEqual([one, two].map((id) => ({ id, remoteJid: LID, fromMe: false })));
    expect(await rig.inbox.takeUnread(chatId('+4915112345'))).toEqual([]);
    await rig.put({ chat: '888@lid', fromMe: true });
    await rig.drained();
    expect(await rig.inbox.takeUnread(chatId('888@lid'))).toEqual([]);
    expect(await rig.inbox.takeUnread(chatId('1@g.us'))).toEqual([
      { id: inGroup, remoteJid: '1@g.us', participant: LID, fromMe: false },
    ]);
  });

  it('is given out to a turn that begins before the hand-over resolves, and once if it fails', async () => {
    await using rig = await openInboxRig();
    const chat = chatId('+4915112345');
    let early: readonly WAMessageKey[] = [];
    rig.host.beforeStore = async () => {
      early = await rig.inbox.takeUnread(chat);
    };
    const [first] = await rig.put({ ...ALICE });
    await rig.drained();
    expect(early.map(({ id }) => id)).toEqual([first]);
    rig.host.beforeStore = undefined;
    rig.host.isFull = true;
    const [second] = await rig.put({ ...ALICE });
    await rig.clock.advance(20_000);
    expect(await rig.inbox.takeUnread(chat)).toEqual([]);
    await rig.clock.advance(20_000);
    rig.host.isFull = false;
    await rig.drained();
    expect((await rig.inbox.takeUnread(chat)).map(({ id }) => id)).toEqual([second]);
  });

  it('stays within bounds in a chat that nobody works on', async () => {
    await using rig = await openInboxRig();
    await rig.put(...Array.from({ length: 300 }, () => ALICE));
    await rig.drained();
    expect(await rig.inbox.takeUnread(chatId('+4915112345'))).toHaveLength(100);
  });
});

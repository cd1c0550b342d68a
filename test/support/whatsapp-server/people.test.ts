// The people of the server against an unmodified Baileys: chats, receipts, retries, the owner's
// phone, groups, media. Connections and faults as such are tried in server.test.ts.

import { AsyncLocalStorage } from 'node:async_hooks';
import {
  DEFAULT_CONNECTION_CONFIG,
  downloadContentFromMessage,
  type SocketConfig,
} from '@whiskeysockets/baileys';
import { afterAll, describe, expect, test } from 'vitest';
import { BaileysClient, linkedAuth } from './baileys-client.ts';
import type { Addressing } from './contract.ts';
import { acquainted, chatWith, eventually, Listener, silenceConsole } from './listener.ts';
import { startWhatsAppServer } from './server.ts';
import { trustWhatsAppServer } from './trust.ts';
import { trustedWhatsAppServer } from './trusted.ts';
import { createTurns } from './turns.ts';

const server = await trustedWhatsAppServer();
const silence = silenceConsole();

afterAll(() => silence[Symbol.dispose]());

describe('a chat of two', () => {
  const ways: readonly (Addressing & { readonly name: string })[] = [
    { name: 'by LID with the number', by: 'lid', withAlt: true },
    { name: 'by LID alone', by: 'lid', withAlt: false },
    { name: 'by number with the LID', by: 'number', withAlt: true },
    { name: 'by number alone', by: 'number', withAlt: false },
  ];

  test.each(ways)('$name: what is written is read, and so is the answer', async (addressing) => {
    const { phone, ben, auth } = await acquainted(server);
    await using client = await new Listener(server, auth).open();
    const id = await ben.writes('hello', { addressing });
    const { key, pushName } = await client.hears('hello');
    const [lid, number] = [chatWith(ben), `${ben.number}@s.whatsapp.net`];
    expect(key).toMatchObject({
      id,
      fromMe: false,
      remoteJid: addressing.by === 'lid' ? lid : number,
    });
    const alt = addressing.by === 'lid' ? number : lid;
    expect(key.remoteJidAlt).toBe(addressing.withAlt ? alt : undefined);
    expect(pushName).toBe('Ben');
    const answer = await client.says(key.remoteJid ?? '', 'hello Ben');
    const seen = await ben.sees(({ text }) => text === 'hello Ben');
    expect(seen).toMatchObject({ id: answer, arrivals: 1, earlier: [], revoked: false });
    await ben.writes('and again', { addressing });
    await client.hears('and again');
    expect(ben.undecryptable).toBe(0);
    await eventually(() => expect(phone.ownSent.map(({ text }) => text)).toEqual(['hello Ben']));
  });

  test('a message carries its time, its id and what it quotes', async () => {
    const { ben, auth } = await acquainted(server);
    await using client = await new Listener(server, auth).open();
    const at = Date.UTC(2026, 4, 1, 10);
    const quoting = { id: 'QUOTED', text: 'which?' };
    await ben.writes('that one', { id: 'CHOSEN', at, quoting });
    const message = await client.hears('that one');
    expect(message.key.id).toBe('CHOSEN');
    expect(Number(message.messageTimestamp)).toBe(at / 1000);
    const quote = message.message?.extendedTextMessage?.contextInfo;
    expect(quote?.stanzaId).toBe('QUOTED');
    expect(quote?.quotedMessage?.conversation).toBe('which?');
  });

  test('typing is seen', async () => {
    const { ben, auth } = await acquainted(server);
    await using client = await new Listener(server, auth).open();
    await client.socket.sendPresenceUpdate('composing', chatWith(ben));
    await client.socket.sendPresenceUpdate('paused', chatWith(ben));
    await eventually(() => expect(ben.typing).toEqual(['composing', 'paused']));
  });

  test('delivery is confirmed in both directions, reading in one', async () => {
    const { ben, auth } = await acquainted(server);
    await using client = await new Listener(server, auth).open();
    // Where its own message is not reported yet, Baileys puts the status there, and tells no update.
    const confirmed: unknown[] = [];
    client.socket.ws.on('CB:receipt', ({ attrs }) => confirmed.push(attrs.id));
    const id = await ben.writes('hello');
    const { key } = await client.hears('hello');
    await eventually(() => expect(ben.deliveredIds).toEqual([id]));
    expect(ben.readIds).toEqual([]);
    await client.socket.readMessages([key]);
    await eventually(() => expect(ben.readIds).toEqual([id]));
    const answer = await client.says(chatWith(ben), 'hello Ben');
    await eventually(() => expect(confirmed).toContain(answer));
  });

  test('edits and a revoke are seen on the message they change', async () => {
    const { ben, auth } = await acquainted(server);
    await using client = await new Listener(server, auth).open();
    const jid = chatWith(ben);
    const id = await client.says(jid, 'one');
    const key = { remoteJid: jid, id, fromMe: true };
    await client.socket.sendMessage(jid, { text: 'two', edit: key });
    await client.socket.sendMessage(jid, { text: 'three', edit: key });
    await ben.sees(({ text, earlier }) => text === 'three' && earlier.join() === 'one,two');
    await client.socket.sendMessage(jid, { delete: key });
    await ben.sees(({ revoked }) => revoked);
    expect(ben.seen).toHaveLength(1);
  });

  test('what is written while the device is away waits for it, in order', async () => {
    const { phone, ben, auth } = await acquainted(server);
    {
      await using client = await new Listener(server, auth).open();
      await ben.writes('here');
      await client.hears('here');
      await eventually(() => expect(phone.queued).toBe(0));
    }
    await phone.offline();
    const texts = Array.from({ length: 12 }, (_, n) => `away ${n}`);
    for (const text of texts) await ben.writes(text);
    expect(phone.queued).toBe(12);
    await using client = await new Listener(server, auth).open();
    await client.hears('away 11');
    expect(client.heardTexts()).toEqual(texts);
    expect(new Set(client.kinds)).toEqual(new Set(['append']));
    await eventually(() => expect(phone.queued).toBe(0));
  });

  test('what was written before any device was linked is history, not news', async () => {
    const phone = await server.phone();
    const ben = await server.contact(phone, { name: 'Ben' });
    const id = await ben.writes('before you came', { at: Date.UTC(2026, 0, 1) });
    await using client = new Listener(server, await linkedAuth(server, phone));
    const history = new Promise((resolve) => {
      client.socket.ev.on('messaging-history.set', ({ messages }) =>
        resolve(messages.map(({ key, message }) => [key.id, message?.conversation])),
      );
    });
    expect(await history).toEqual([[id, 'before you came']]);
    await ben.writes('now');
    await client.hears('now');
    expect(client.heardTexts()).toEqual(['now']);
  });

  test('another device of a person has sessions of its own', async () => {
    const { ben, auth } = await acquainted(server);
    await using client = await new Listener(server, auth).open();
    await ben.writes('from the desk', { device: 3 });
    const { key } = await client.hears('from the desk');
    expect(key.remoteJid).toBe(chatWith(ben));
    await ben.writes('from the phone');
    await client.hears('from the phone');
    await client.says(chatWith(ben), 'to both');
    await ben.sees(({ text }) => text === 'to both');
    await ben.writes('from the desk again', { device: 3 });
    await client.hears('from the desk again');
    expect(ben.undecryptable).toBe(0);
  });

  test('somebody who left cannot be written to, and is not found', async () => {
    const { phone, ben, auth } = await acquainted(server);
    const cleo = await server.contact(phone, { name: 'Cleo' });
    await using client = await new Listener(server, auth).open();
    const found = await client.socket.onWhatsApp(ben.number, cleo.number);
    expect(found).toHaveLength(2);
    ben.leaves();
    expect(await client.socket.onWhatsApp(ben.number)).toEqual([]);
    const refused = new Promise((resolve) => {
      client.socket.ws.once('CB:ack,class:message', ({ attrs }) => resolve(attrs.error));
    });
    await client.says(`${ben.number}@s.whatsapp.net`, 'still there?');
    expect(await refused).toBe('479');
    expect(ben.seen).toEqual([]);
  });

  test('messages that cross in one chat are all read when session calls take turns', async () => {
    const { ben, auth } = await acquainted(server);
    await using client = await new Listener(server, auth, { makeSignalRepository: inTurns }).open();
    await ben.writes('begin');
    await client.hears('begin');
    const rounds = Array.from({ length: 40 }, (_, n) => n);
    const jid = chatWith(ben);
    await Promise.all([
      ...rounds.map((n) => ben.writes(`up ${n}`)),
      ...rounds.map((n) => client.says(jid, `down ${n}`)),
    ]);
    await client.hears('up 39');
    await eventually(() => expect(ben.seen).toHaveLength(40));
    expect(ben.undecryptable).toBe(0);
    expect(ben.seen.every(({ arrivals }) => arrivals === 1)).toBe(true);
    expect(client.heardTexts()).toHaveLength(41);
  });

  test('two hundred people write at once', async () => {
    const { phone, auth } = await acquainted(server);
    await using client = await new Listener(server, auth).open();
    const people = await Promise.all(Array.from({ length: 200 }, () => server.contact(phone)));
    await Promise.all(people.map((person, n) => person.writes(`from ${n}`)));
    await eventually(() => expect(client.heardTexts()).toHaveLength(200));
  });
});

/** Session calls outside of the library's transaction, one at a time. */
const inTurns: SocketConfig['makeSignalRepository'] = (auth, logger, lookUp) => {
  const outside = AsyncLocalStorage.snapshot();
  const turns = createTurns();
  const repository = DEFAULT_CONNECTION_CONFIG.makeSignalRepository(auth, logger, lookUp);
  const { encryptMessage, decryptMessage, injectE2ESession } = repository;
  return Object.assign(repository, {
    encryptMessage: (options: Parameters<typeof encryptMessage>[0]) =>
      turns(() => outside(encryptMessage, options)),
    decryptMessage: (options: Parameters<typeof decryptMessage>[0]) =>
      turns(() => outside(decryptMessage, options)),
    injectE2ESession: (options: Parameters<typeof injectE2ESession>[0]) =>
      turns(() => outside(injectE2ESession, options)),
  });
};

describe("the owner's phone", () => {
  test('what the owner types by hand reaches the device as its own and the contact', async () => {
    const { phone, ben, auth } = await acquainted(server);
    await using client = await new Listener(server, auth).open();
    const id = await phone.writesTo(ben, 'by hand');
    const { key } = await client.hears('by hand');
    expect(key).toMatchObject({ id, fromMe: true, remoteJid: chatWith(ben) });
    expect(ben.seen.map(({ text }) => text)).toEqual(['by hand']);
    await eventually(() => expect(phone.queued).toBe(0));
  });

  test('what the device asks of the phone alone is taken, and shown nowhere', async () => {
    const { phone, ben, auth } = await acquainted(server);
    await using client = await new Listener(server, auth).open();
    const answered = new Promise((resolve) => {
      client.socket.ws.once('CB:ack,class:message', ({ attrs }) => resolve(attrs.error));
    });
    await client.socket.fetchMessageHistory(1, { remoteJid: chatWith(ben), id: 'OLD' }, 0);
    expect(await answered).toBeUndefined();
    expect([...phone.selfChat, ...phone.ownSent]).toEqual([]);
  });

  test.each(['lid', 'number'] as const)(
    'the chat with oneself works both ways by %s',
    async (by) => {
      const { phone, auth } = await acquainted(server);
      await using client = await new Listener(server, auth).open();
      const id = await phone.writesToSelf('note', { addressing: { by, withAlt: true } });
      const { key } = await client.hears('note');
      const self = by === 'lid' ? `${phone.lid}@lid` : `${phone.number}@s.whatsapp.net`;
      expect(key).toMatchObject({ id, fromMe: true, remoteJid: self });
      const answer = await client.says(self, 'noted');
      await eventually(() => expect(phone.selfChat).toMatchObject([{ id: answer, text: 'noted' }]));
      expect(phone.ownSent).toEqual([]);
      expect(phone.selfChat[0]?.arrivals).toBe(1);
    },
  );
});

describe('a group', () => {
  test('members read the device, the device reads members', async () => {
    const { phone, ben, auth } = await acquainted(server);
    const cleo = await server.contact(phone, { name: 'Cleo' });
    const group = await server.group(phone, [ben, cleo], 'Plans');
    await using client = await new Listener(server, auth).open();
    const metadata = await client.socket.groupMetadata(group.jid);
    expect(metadata.subject).toBe('Plans');
    expect(metadata.participants.map(({ id }) => id)).toContain(chatWith(cleo));
    for (const text of ['first', 'second']) {
      const id = await group.says(ben, text);
      const { key } = await client.hears(text);
      expect(key).toMatchObject({ id, remoteJid: group.jid, participant: chatWith(ben) });
    }
    for (const text of ['third', 'fourth']) {
      await client.says(group.jid, text);
      for (const member of [ben, cleo]) {
        await eventually(() => expect(group.seenBy(member).at(-1)?.text).toBe(text));
      }
    }
    expect(ben.seen).toEqual([]);
    await eventually(() =>
      expect(phone.ownSent.map(({ text }) => text)).toEqual(['third', 'fourth']),
    );
    await eventually(() => expect(phone.queued).toBe(0));
  });

  test('a member writes by number and from another device', async () => {
    const { phone, ben, auth } = await acquainted(server);
    const group = await server.group(phone, [ben]);
    await using client = await new Listener(server, auth).open();
    await group.says(ben, 'by number', { addressing: { by: 'number', withAlt: true } });
    const { key } = await client.hears('by number');
    expect(key.participant).toBe(`${ben.number}@s.whatsapp.net`);
    expect(key.participantAlt).toBe(chatWith(ben));
    await group.says(ben, 'from the desk', { device: 3 });
    await client.hears('from the desk');
  });

  test('a member who cannot read asks again', async () => {
    const { phone, ben, auth } = await acquainted(server);
    const group = await server.group(phone, [ben]);
    await using client = await new Listener(server, auth).open();
    await client.says(group.jid, 'one');
    await eventually(() => expect(group.seenBy(ben)).toHaveLength(1));
    const id = await client.says(group.jid, 'two');
    await eventually(() => expect(group.seenBy(ben)).toHaveLength(2));
    await ben.asksAgain(id);
    await eventually(() => expect(group.seenBy(ben)[1]?.arrivals).toBe(2));
  });
});

test('media go up and come down again', async () => {
  const { ben, auth } = await acquainted(server);
  using _trust = trustWhatsAppServer(server.rootKey, server.mediaCertificate);
  await using client = await new Listener(server, auth).open();
  const picture = Buffer.alloc(70_000, 'pixels');
  const message = await client.socket.sendMessage(chatWith(ben), {
    image: picture,
    caption: 'a picture',
    jpegThumbnail: '',
    width: 1,
    height: 1,
  });
  await ben.sees(({ text }) => text === 'a picture');
  const stream = await downloadContentFromMessage(message?.message?.imageMessage ?? {}, 'image');
  expect(Buffer.concat(await stream.toArray()).equals(picture)).toBe(true);
});

test('a message with a part that no server knows is not taken', async () => {
  const strict = await startWhatsAppServer();
  const phone = await strict.phone();
  const ben = await strict.contact(phone);
  {
    using _trust = trustWhatsAppServer(strict.rootKey);
    await using client = await new BaileysClient(strict, await linkedAuth(strict, phone)).open();
    const additionalNodes = [{ tag: 'novelty', attrs: {} }];
    await client.socket.relayMessage(chatWith(ben), { conversation: 'new' }, { additionalNodes });
    await eventually(() => expect(strict.unhandled).toHaveLength(1));
  }
  expect(ben.seen).toEqual([]);
  await expect(strict[Symbol.asyncDispose]()).rejects.toThrow('unhandled stanza <message');
});

// The way out against the WhatsApp server: what arrives, what is believed to have arrived, and what
// happens when the answer about it is lost. Pace, drafts and typing are tried in outbox-pace.test.ts.

import { describe, expect, test, vi } from 'vitest';
import { after, BACKOFF, NEVER } from '../../../src/kernel/message/errors.ts';
import { messageId, nativeId } from '../../../src/kernel/message/ids.ts';
import { createMovableClock } from '../../support/movable-clock.ts';
import { trustedWhatsAppServer } from '../../support/whatsapp-server/trusted.ts';
import { answer, OutboxRig, partsNoted, refOf, refusalOf } from './outbox-rig.ts';

const server = await trustedWhatsAppServer();

const eventually = (look: () => void) => vi.waitFor(look, { timeout: 45_000, interval: 5 });

describe('an answer', () => {
  test('is read by the person, in WhatsApp’s marks, and on the owner’s phone', async () => {
    await using rig = await OutboxRig.start(server);
    const [ben, chat] = await rig.friend();
    const noted = partsNoted();
    const receipt = await rig.send(answer(chat, 'Hello **Ben**, see [this](https://a.b/c)'), noted);
    const seen = await ben.sees(() => true);
    expect(seen).toMatchObject({ text: 'Hello *Ben*, see this (https://a.b/c)', arrivals: 1 });
    expect(seen.id).toMatch(/^3EB0[0-9A-F]{18}$/);
    expect(receipt.nativeIds).toEqual([seen.id]);
    expect(noted.parts).toEqual([seen.id]);
    await eventually(() => expect(rig.phone.ownSent.map(({ id }) => id)).toEqual([seen.id]));
    expect(await rig.outbox.isOurs(seen.id)).toBe(true);
  });

  test('that is long arrives whole, in order, in messages of at most 4,000 characters', async () => {
    await using rig = await OutboxRig.start(server);
    const [ben, chat] = await rig.friend();
    const paragraphs = Array.from(
      { length: 60 },
      (_, n) => `**${n}.** ${'word '.repeat(40).trim()}`,
    );
    const noted = partsNoted();
    await rig.send(answer(chat, paragraphs.join('\n\n')), noted);
    await eventually(() => expect(ben.seen).toHaveLength(noted.parts.length));
    expect(noted.parts.length).toBeGreaterThan(3);
    const texts = ben.seen.map(({ text }) => text);
    for (const text of texts) expect(text.length).toBeLessThanOrEqual(4000);
    expect(noted.ends).toEqual(noted.parts.slice(-1));
    expect(texts.join('\n\n')).toBe(paragraphs.join('\n\n').replaceAll('**', '*'));
  });

  test('goes on behind the parts that were delivered', async () => {
    await using rig = await OutboxRig.start(server);
    const [ben, chat] = await rig.friend();
    const markdown = Array.from({ length: 3 }, (_, n) => `${n} `.repeat(1900).trim()).join('\n\n');
    const sentParts = [nativeId('FIRST'), nativeId('SECOND')];
    const { nativeIds } = await rig.send(answer(chat, markdown), { sentParts });
    expect(nativeIds).toEqual(['FIRST', 'SECOND', expect.stringMatching(/^3EB0/)]);
    await ben.sees(({ text }) => text.startsWith('2 '));
    expect(ben.seen).toHaveLength(1);
  });

  test('without any text is no message', async () => {
    await using rig = await OutboxRig.start(server);
    const [, chat] = await rig.friend();
    expect(await rig.send(answer(chat, ' \n\n '))).toEqual({ nativeIds: [] });
    expect(rig.phone.outbound).toEqual([]);
  });
});

describe('a message that WhatsApp does not take', () => {
  test.each([
    [403, NEVER],
    [404, NEVER],
    [463, NEVER],
    [429, after(60_000)],
    [500, BACKOFF],
    [503, BACKOFF],
  ])('is refused with %i: surely not sent', async (code, remedy) => {
    await using rig = await OutboxRig.start(server);
    const [ben, chat] = await rig.friend();
    server.fault({ direction: 'up', stanza: 'message', effect: { kind: 'nack', code } });
    const noted = partsNoted();
    const error = await refusalOf(rig.send(answer(chat, 'hello'), noted));
    expect(error).toMatchObject({ certainty: 'not_sent', remedy });
    expect(noted.parts).toEqual([]);
    await rig.send(answer(chat, 'hello'), noted);
    expect((await ben.sees(() => true)).arrivals).toBe(1);
    expect(noted.parts).toHaveLength(1);
  });

  test.each([
    ['once', 1],
    ['again', 2],
  ])('is refused for its devices %s: sent to fresh ones, once', async (_, times) => {
    await using rig = await OutboxRig.start(server);
    const [ben, chat] = await rig.friend();
    const effect = { kind: 'nack', code: 479 } as const;
    server.fault({ direction: 'up', stanza: 'message', times, effect });
    if (times === 1) {
      await rig.send(answer(chat, 'hello'));
    } else {
      const error = await refusalOf(rig.send(answer(chat, 'hello')));
      expect(error).toMatchObject({ certainty: 'not_sent', remedy: NEVER });
      await rig.send(answer(chat, 'hello'));
    }
    expect((await ben.sees(() => true)).arrivals).toBe(1);
  });

  test('is refused for its devices: waits until the server says which they are', async () => {
    await using rig = await OutboxRig.start(server, { socket: { defaultQueryTimeoutMs: 1500 } });
    const [ben, chat] = await rig.friend();
    await rig.send(answer(chat, 'hello'));
    server.fault({ direction: 'up', stanza: 'message', effect: { kind: 'nack', code: 479 } });
    server.fault({ direction: 'up', stanza: 'iq usync', times: 2, effect: { kind: 'drop' } });
    const second = answer(chat, 'hello again', { id: messageId('turn/1') });
    const error = await refusalOf(rig.send(second));
    expect(error).toMatchObject({ certainty: 'not_sent', remedy: BACKOFF });
    await rig.send(second);
    await ben.sees(({ text }) => text === 'hello again');
  });

  test('to a number that is not on WhatsApp is refused for good, before anything is sent', async () => {
    await using rig = await OutboxRig.start(server, { settings: { firstContact: true } });
    const error = await refusalOf(rig.send(answer(refOf('+4915112345678'), 'hello')));
    expect(error).toMatchObject({ certainty: 'not_sent', remedy: NEVER });
    expect(error.message).toMatch(/not on WhatsApp/);
    expect(rig.phone.outbound).toEqual([]);
  });

  test('waits when the server does not say who would get it', async () => {
    await using rig = await OutboxRig.start(server, { socket: { defaultQueryTimeoutMs: 1500 } });
    const [ben, chat] = await rig.friend();
    const effect = { kind: 'drop' } as const;
    server.fault({ direction: 'up', stanza: 'iq usync', times: 2, effect });
    const error = await refusalOf(rig.send(answer(chat, 'hello')));
    expect(error).toMatchObject({ certainty: 'not_sent', remedy: BACKOFF });
    expect(rig.phone.outbound).toEqual([]);
    await rig.send(answer(chat, 'hello'));
    await ben.sees(({ text }) => text === 'hello');
  });

  test('waits when there is no connection', async () => {
    const clock = createMovableClock();
    await using rig = await OutboxRig.start(server, { clock });
    const [ben, chat] = await rig.friend();
    await rig.disconnect();
    const refusal = refusalOf(rig.send(answer(chat, 'hello')));
    await clock.advance(20_000);
    expect(await refusal).toMatchObject({ certainty: 'not_sent', remedy: BACKOFF });
    await rig.connect();
    await rig.send(answer(chat, 'hello'));
    expect((await ben.sees(() => true)).arrivals).toBe(1);
  });
});

describe('a message of which it is not known whether it arrived', () => {
  test('no word in 20 seconds: sent again under the same id, it is one message', async () => {
    const clock = createMovableClock();
    await using rig = await OutboxRig.start(server, { clock });
    const [ben, chat] = await rig.friend();
    server.fault({ direction: 'down', stanza: 'ack', effect: { kind: 'drop' } });
    const noted = partsNoted();
    const refusal = refusalOf(rig.send(answer(chat, 'hello'), noted));
    const { id } = await ben.sees(() => true);
    await clock.advance(20_000);
    expect(await refusal).toMatchObject({ certainty: 'unknown', remedy: BACKOFF });
    expect(noted.parts).toEqual([]);

    await rig.send(answer(chat, 'hello'), { ...noted, attempt: 2, repeatsUnknown: true });
    await eventually(() => expect(ben.seen).toMatchObject([{ id, text: 'hello', arrivals: 2 }]));
    expect(noted.parts).toEqual([id]);
  });

  test('the word comes late: it is not sent again', async () => {
    const clock = createMovableClock();
    await using rig = await OutboxRig.start(server, { clock });
    const [ben, chat] = await rig.friend();
    // Held back until the next ack passes.
    server.fault({ direction: 'down', stanza: 'ack', effect: { kind: 'reorder' } });
    const refusal = refusalOf(rig.send(answer(chat, 'hello')));
    const { id } = await ben.sees(() => true);
    await clock.advance(20_000);
    expect((await refusal).certainty).toBe('unknown');
    await rig.send(answer(chat, 'other', { id: 'turn/1' as never }));
    await eventually(async () => {
      expect(await rig.host.state.get(`sent/${id}`)).toContain('"taken"');
    });
    const { nativeIds } = await rig.send(answer(chat, 'hello'), { attempt: 2 });
    expect(nativeIds).toEqual([id]);
    await ben.sees(({ text }) => text === 'other');
    expect(ben.seen.map(({ arrivals }) => arrivals)).toEqual([1, 1]);
  });

  test('the connection breaks before the word came', async () => {
    await using rig = await OutboxRig.start(server);
    const [ben, chat] = await rig.friend();
    server.fault({ direction: 'down', stanza: 'ack', effect: { kind: 'drop' } });
    const refusal = refusalOf(rig.send(answer(chat, 'hello')));
    await ben.sees(() => true);
    await rig.cut();
    expect(await refusal).toMatchObject({ certainty: 'unknown', remedy: BACKOFF });
    await rig.connect();
    await rig.send(answer(chat, 'hello'));
    await eventually(() => expect(ben.seen).toMatchObject([{ text: 'hello', arrivals: 2 }]));
  });

  test('the connection breaks before anything left', async () => {
    await using rig = await OutboxRig.start(server);
    const [ben, chat] = await rig.friend();
    // The keys are asked for right before the send.
    server.fault({ direction: 'up', stanza: 'iq key', effect: { kind: 'drop' } });
    const refusal = refusalOf(rig.send(answer(chat, 'hello')));
    await eventually(async () => {
      expect(await rig.host.state.list('sent/')).toHaveLength(1);
    });
    await rig.cut();
    expect(await refusal).toMatchObject({ certainty: 'not_sent', remedy: BACKOFF });
    expect(ben.seen).toEqual([]);
  });

  test('the process ends in the middle: the next one sends the same message', async () => {
    await using rig = await OutboxRig.start(server);
    const [ben, chat] = await rig.friend();
    server.fault({ direction: 'down', stanza: 'ack', effect: { kind: 'drop' } });
    rig.send(answer(chat, 'hello')).catch(() => undefined);
    const { id } = await ben.sees(() => true);
    await rig.restart();
    const { nativeIds } = await rig.send(answer(chat, 'hello'), { attempt: 2 });
    expect(nativeIds).toEqual([id]);
    await eventually(() => expect(ben.seen).toMatchObject([{ id, text: 'hello', arrivals: 2 }]));
  });
});

describe('a phone that asks for a message again', () => {
  test('gets it after a restart, under the same id', async () => {
    await using rig = await OutboxRig.start(server);
    const [ben, chat] = await rig.friend();
    const { nativeIds } = await rig.send(answer(chat, 'hello **again**'));
    const [id = ''] = nativeIds;
    await ben.sees(() => true);
    await rig.restart();
    await ben.losesSession();
    await ben.asksAgain(id);
    await eventually(() => {
      expect(ben.seen).toMatchObject([{ id, text: 'hello *again*', arrivals: 2 }]);
    });
  });

  test('gets nothing of another chat, however it came by the id', async () => {
    await using rig = await OutboxRig.start(server);
    const [ben, chat] = await rig.friend();
    const [eve, other] = await rig.friend();
    const { nativeIds } = await rig.send(answer(chat, 'for Ben only'));
    const id = nativeIds[0] ?? '';
    const asked = (remoteJid: string) => rig.outbox.getMessage({ remoteJid, id, fromMe: true });
    expect(await asked(`${eve.lid}@lid`)).toBeUndefined();
    expect(await asked(`${eve.number}@s.whatsapp.net`)).toBeUndefined();
    expect(await asked('1234-5678@g.us')).toBeUndefined();
    expect(await asked('')).toBeUndefined();
    expect((await asked(`${ben.lid}@lid`))?.extendedTextMessage?.text).toBe('for Ben only');
    expect((await asked(`${ben.lid}:7@lid`))?.extendedTextMessage?.text).toBe('for Ben only');
    expect(other.chat).not.toBe(chat.chat);
  });
});

describe('a chat that is not the agent’s to write in', () => {
  test('is left to the owner who answers there by hand', async () => {
    await using rig = await OutboxRig.start(server);
    const [, chat] = await rig.friend();
    rig.paused.add(chat.chat);
    const error = await refusalOf(rig.send(answer(chat, 'hello')));
    expect(error).toMatchObject({ certainty: 'not_sent', remedy: NEVER });
    expect(error.message).toMatch(/owner of the account is answering in this chat/);
    expect(rig.phone.outbound).toEqual([]);
  });

  test('is not opened by the agent unless the settings allow it', async () => {
    await using rig = await OutboxRig.start(server);
    const stranger = await server.contact(rig.phone);
    const chat = refOf(`+${stranger.number}`);
    const error = await refusalOf(rig.send(answer(chat, 'hello')));
    expect(error).toMatchObject({ certainty: 'not_sent', remedy: NEVER });
    expect(error.message).toContain('channels.whatsapp.firstContact');
    await rig.restart({ firstContact: true });
    await rig.send(answer(chat, 'hello'));
    await stranger.sees(({ text }) => text === 'hello');
  });

  test('is a group the account is in: it may be answered at once', async () => {
    await using rig = await OutboxRig.start(server);
    const [ben] = await rig.friend();
    const group = await server.group(rig.phone, [ben], 'Friends');
    await rig.send(answer(refOf(group.jid), 'hello all'));
    await eventually(() => {
      expect(group.seenBy(ben).map(({ text }) => text)).toEqual(['hello all']);
    });
  });

  test('has a name that is nobody’s', async () => {
    await using rig = await OutboxRig.start(server);
    const error = await refusalOf(rig.send(answer(refOf('nobody'), 'hello')));
    expect(error).toMatchObject({ certainty: 'not_sent', remedy: NEVER });
  });
});

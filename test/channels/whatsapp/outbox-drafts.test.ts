// Answers that grow in the chat, typing and read marks, against the WhatsApp server.

import { describe, expect, test, vi } from 'vitest';
import { NEVER } from '../../../src/kernel/message/errors.ts';
import { messageId } from '../../../src/kernel/message/ids.ts';
import type { ChatRef } from '../../../src/kernel/message/message.ts';
import { createMovableClock } from '../../support/movable-clock.ts';
import type { Contact } from '../../support/whatsapp-server/contract.ts';
import { trustedWhatsAppServer } from '../../support/whatsapp-server/trusted.ts';
import { answer, OutboxRig, partsNoted, refOf, refusalOf } from './outbox-rig.ts';

const server = await trustedWhatsAppServer();

const signal = new AbortController().signal;
const eventually = (look: () => void) => vi.waitFor(look, { timeout: 45_000, interval: 5 });
const MINUTE = 60_000;

async function drafting(): Promise<{
  rig: OutboxRig;
  ben: Contact;
  chat: ChatRef;
  clock: ReturnType<typeof createMovableClock>;
}> {
  const clock = createMovableClock();
  const rig = await OutboxRig.start(server, { clock, settings: FAST });
  const [ben, chat] = await rig.friend();
  return { rig, ben, chat, clock };
}

const FAST = { pacing: { chatPerMinute: 1000, accountPerMinute: 1000, minGapMs: 0, maxGapMs: 0 } };

describe('a draft', () => {
  test('grows in the chat and becomes the answer, its further parts behind it', async () => {
    const { rig, ben, chat } = await drafting();
    await using _rig = rig;
    const draft = await rig.outbox.edits.place(chat, 'The answer is', { signal });
    await rig.outbox.edits.edit(chat, draft, 'The answer is **about', signal);
    await ben.sees(({ text }) => text === 'The answer is **about');
    const markdown = `The answer is **42**.\n\n${'word '.repeat(1200)}`;
    const noted = partsNoted();
    const { nativeIds } = await rig.send(answer(chat, markdown), { draft, ...noted });
    await eventually(() => expect(ben.seen).toHaveLength(2));
    expect(nativeIds).toEqual(ben.seen.map(({ id }) => id));
    expect(noted.parts).toEqual(nativeIds);
    expect(noted.ends).toEqual(nativeIds.slice(-1));
    const [first, second] = ben.seen;
    expect(first).toMatchObject({
      id: draft,
      earlier: ['The answer is', 'The answer is **about'],
      revoked: false,
    });
    expect(first?.text).toMatch(/^The answer is \*42\*\./);
    expect(second?.text).toMatch(/^word/);
  });

  test('whose last edit was not confirmed is edited again, with the same effect', async () => {
    const { rig, ben, chat, clock } = await drafting();
    await using _rig = rig;
    const draft = await rig.outbox.edits.place(chat, 'The answer is', { signal });
    server.fault({ direction: 'down', stanza: 'ack', effect: { kind: 'drop' } });
    const refusal = refusalOf(rig.send(answer(chat, 'The answer is 42'), { draft }));
    await ben.sees(({ text }) => text === 'The answer is 42');
    await clock.advance(20_000);
    expect((await refusal).certainty).toBe('unknown');
    await rig.restart();
    const { nativeIds } = await rig.send(answer(chat, 'The answer is 42'), { draft });
    expect(nativeIds).toEqual([draft]);
    expect(ben.seen).toHaveLength(1);
    expect(ben.seen[0]?.earlier).toEqual(['The answer is']);
  });

  test('too old to be edited gives way to a new message', async () => {
    const { rig, ben, chat, clock } = await drafting();
    await using _rig = rig;
    const draft = await rig.outbox.edits.place(chat, 'The answer is', { signal });
    await clock.advance(15 * MINUTE);
    await rig.outbox.edits.edit(chat, draft, 'The answer is about', signal);
    const noted = partsNoted();
    const { nativeIds } = await rig.send(answer(chat, 'The answer is 42'), { draft, ...noted });
    // What is left to do, removing the draft, must not repeat the answer.
    expect(noted).toMatchObject({ parts: nativeIds, ends: [] });
    await eventually(() => expect(ben.seen.map(({ revoked }) => revoked)).toEqual([true, false]));
    expect(ben.seen[1]).toMatchObject({ id: nativeIds[0], text: 'The answer is 42' });
  });

  test('that WhatsApp will not have edited gives way to a new message', async () => {
    const { rig, ben, chat } = await drafting();
    await using _rig = rig;
    const draft = await rig.outbox.edits.place(chat, 'The answer is', { signal });
    server.fault({ direction: 'up', stanza: 'message', effect: { kind: 'nack', code: 406 } });
    await rig.send(answer(chat, 'The answer is 42'), { draft });
    await ben.sees(({ text }) => text === 'The answer is 42');
    await eventually(() => expect(ben.seen.map(({ revoked }) => revoked)).toEqual([true, false]));
  });

  test('of an answer without text is taken away', async () => {
    const { rig, ben, chat } = await drafting();
    await using _rig = rig;
    const draft = await rig.outbox.edits.place(chat, 'Let me see', { signal });
    expect(await rig.send(answer(chat, ' '), { draft })).toEqual({ nativeIds: [] });
    await ben.sees(({ revoked }) => revoked);
  });

  test('that cannot be read by the phone is sent to it again as it is then', async () => {
    const { rig, ben, chat } = await drafting();
    await using _rig = rig;
    const draft = await rig.outbox.edits.place(chat, 'The answer is', { signal });
    await ben.sees(() => true);
    await rig.restart();
    await ben.losesSession();
    await rig.send(answer(chat, 'The answer is 42'), { draft });
    await ben.sees(({ text }) => text === 'The answer is 42');
    expect(ben.undecryptable).toBe(1);
    expect(ben.seen).toHaveLength(1);
  });

  test('is not edited faster than the pace allows, and not placed where the owner writes', async () => {
    const { rig, ben, chat } = await drafting();
    await using _rig = rig;
    await rig.restart({ pacing: { minGapMs: 2000, maxGapMs: 2000 } });
    const draft = await rig.outbox.edits.place(chat, 'The answer is', { signal });
    await rig.outbox.edits.edit(chat, draft, 'The answer is about', signal);
    expect(rig.phone.outbound).toHaveLength(1);
    rig.paused.add(chat.chat);
    const refusal = await refusalOf(rig.outbox.edits.place(chat, 'Another', { signal }));
    expect(refusal).toMatchObject({ certainty: 'not_sent', remedy: NEVER });
    await ben.sees(({ text }) => text === 'The answer is');
  });

  test('shows its beginning where it outgrows one message', async () => {
    const { rig, ben, chat } = await drafting();
    await using _rig = rig;
    await rig.outbox.edits.place(chat, '**some** word\n\n'.repeat(500), { signal });
    const { text } = await ben.sees(() => true);
    expect(text.length).toBeLessThanOrEqual(4000);
    expect(text).toMatch(/^\*some\* word\n\n.*…$/s);
  });
});

describe('typing and read marks', () => {
  test('what the agent works on is marked as read, then it types', async () => {
    await using rig = await OutboxRig.start(server);
    const [ben, chat] = await rig.friend();
    const id = await ben.writes('hello?');
    rig.unread.set(chat.chat, [{ remoteJid: `${ben.lid}@lid`, id, fromMe: false }]);
    await rig.outbox.typing.show(chat, signal);
    await eventually(() => expect(ben.typing).toEqual(['composing']));
    await eventually(() => expect(ben.readIds).toEqual([id]));
    await rig.send(answer(chat, 'hello!'));
    await eventually(() => expect(ben.typing).toEqual(['composing', 'paused']));
  });

  test('an answer marks as read as well, unless nothing is to be marked', async () => {
    await using rig = await OutboxRig.start(server);
    const [ben, chat] = await rig.friend();
    const note = async () => {
      const id = await ben.writes('hello?');
      rig.unread.set(chat.chat, [{ remoteJid: `${ben.lid}@lid`, id, fromMe: false }]);
      return id;
    };
    const first = await note();
    await rig.send(answer(chat, 'hello!'));
    await eventually(() => expect(ben.readIds).toEqual([first]));
    await rig.restart({ readReceipts: false });
    await note();
    await rig.outbox.typing.show(chat, signal);
    await rig.send(answer(chat, 'hello!', { id: messageId('turn/1') }));
    await ben.sees(({ text }) => text === 'hello!');
    await eventually(() => expect(ben.typing).toEqual(['composing', 'paused']));
    expect(ben.readIds).toEqual([first]);
  });

  test('nothing is shown without a connection, to nobody, or where the owner writes', async () => {
    await using rig = await OutboxRig.start(server);
    const [ben, chat] = await rig.friend();
    await rig.outbox.typing.show(refOf('nobody'), signal);
    rig.paused.add(chat.chat);
    await rig.outbox.typing.show(chat, signal);
    rig.paused.clear();
    await rig.disconnect();
    await rig.outbox.typing.show(chat, signal);
    await rig.connect();
    await rig.send(answer(chat, 'hello'));
    await ben.sees(() => true);
    expect(ben.typing).toEqual([]);
  });
});

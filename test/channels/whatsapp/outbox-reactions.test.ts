// The sign on a question while it is worked on, against the WhatsApp server.

import { describe, expect, test, vi } from 'vitest';
import { whatsappMessageId } from '../../../src/channels/whatsapp/rules/jid.ts';
import { NEVER } from '../../../src/kernel/message/errors.ts';
import { messageId } from '../../../src/kernel/message/ids.ts';
import type { Contact } from '../../support/whatsapp-server/contract.ts';
import { trustedWhatsAppServer } from '../../support/whatsapp-server/trusted.ts';
import { OutboxRig, refusalOf } from './outbox-rig.ts';

const server = await trustedWhatsAppServer();

const signal = new AbortController().signal;
const eventually = (look: () => void) => vi.waitFor(look, { timeout: 45_000, interval: 5 });
const signsOf = ({ seen }: Contact) =>
  seen.map(({ message }) => message.reactionMessage?.text ?? 'no reaction');

async function asked(settings?: Parameters<OutboxRig['restart']>[0]) {
  const rig = await OutboxRig.start(server, settings === undefined ? {} : { settings });
  const [ben, { chat }] = await rig.friend();
  return { rig, ben, chat, question: whatsappMessageId(chat, 'QUESTION', chat) };
}

describe('a sign on a question', () => {
  test('is set once and taken away, also by the next process, under ids of ours', async () => {
    const { rig, ben, question } = await asked();
    await using _rig = rig;
    await rig.outbox.reactions.react(question, '👀', signal);
    await rig.outbox.reactions.react(question, '👀', signal);
    await eventually(() => expect(signsOf(ben)).toEqual(['👀']));
    expect(ben.seen[0]?.message.reactionMessage?.key).toMatchObject({
      id: 'QUESTION',
      fromMe: false,
    });
    await rig.restart();
    await rig.outbox.reactions.react(question, undefined, signal);
    await rig.outbox.reactions.react(question, undefined, signal);
    await eventually(() => expect(signsOf(ben)).toEqual(['👀', '']));
    for (const { id } of ben.seen) expect(await rig.outbox.isOurs(id)).toBe(true);
  });

  test('that was not confirmed is set again, with the same effect', async () => {
    const { rig, ben, question } = await asked();
    await using _rig = rig;
    server.fault({ direction: 'down', stanza: 'ack', effect: { kind: 'drop' } });
    const giveUp = new AbortController();
    const refusal = refusalOf(rig.outbox.reactions.react(question, '👀', giveUp.signal));
    await eventually(() => expect(signsOf(ben)).toEqual(['👀']));
    giveUp.abort();
    await refusal;
    await rig.restart();
    await rig.outbox.reactions.react(question, '👀', signal);
    await eventually(() => expect(ben.seen.map(({ arrivals }) => arrivals)).toEqual([2]));
  });

  test('is left out where it would have to wait, and then nothing is taken away', async () => {
    const { rig, ben, chat, question } = await asked({
      pacing: { minGapMs: 2000, maxGapMs: 2000 },
    });
    await using _rig = rig;
    const other = whatsappMessageId(chat, 'OTHER', chat);
    await rig.outbox.reactions.react(question, '👀', signal);
    await rig.outbox.reactions.react(other, '👀', signal);
    await rig.outbox.reactions.react(other, undefined, signal);
    await eventually(() => expect(signsOf(ben)).toEqual(['👀']));
    expect(rig.phone.outbound).toHaveLength(1);
  });

  test('is not set where the owner writes, and not left there either', async () => {
    const { rig, ben, chat, question } = await asked();
    await using _rig = rig;
    await rig.outbox.reactions.react(question, '👀', signal);
    rig.paused.add(chat);
    await rig.outbox.reactions.react(question, undefined, signal);
    await eventually(() => expect(signsOf(ben)).toEqual(['👀', '']));
    const other = whatsappMessageId(chat, 'OTHER', chat);
    const refusal = await refusalOf(rig.outbox.reactions.react(other, '👀', signal));
    expect(refusal).toMatchObject({ certainty: 'not_sent', remedy: NEVER });
  });

  test('in a group names whose question it is', async () => {
    const { rig, ben, chat } = await asked();
    await using _rig = rig;
    const group = await server.group(rig.phone, [ben]);
    await rig.outbox.reactions.react(whatsappMessageId(group.jid, 'QUESTION', chat), '👀', signal);
    await eventually(() => expect(group.seenBy(ben)).toHaveLength(1));
    const key = group.seenBy(ben)[0]?.message.reactionMessage?.key;
    expect(key).toMatchObject({ remoteJid: group.jid, id: 'QUESTION', fromMe: false });
    expect(key?.participant).toMatch(new RegExp(`^(${ben.lid}@lid|${ben.number}@s.whatsapp.net)$`));
  });

  test('on what is no message of WhatsApp is none', async () => {
    const { rig, ben } = await asked();
    await using _rig = rig;
    for (const id of ['telegram:1:2/3', 'whatsapp:default:1', 'whatsapp:default:a/b/c/d']) {
      await rig.outbox.reactions.react(messageId(id), '👀', signal);
    }
    expect(ben.seen).toEqual([]);
  });
});

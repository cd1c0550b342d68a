// What people do to earlier messages on WhatsApp: they change and delete their own, and react to ours.

import { proto } from '@whiskeysockets/baileys';
import { afterAll, describe, expect, it } from 'vitest';
import { messageId } from '../../../src/kernel/message/ids.ts';
import { sending } from '../../contract/channel.ts';
import { startWhatsAppServer } from '../../support/whatsapp-server/server.ts';
import { OWN, openInboxRig } from './inbox-rig.ts';
import { startLiveRig } from './live-rig.ts';

const server = await startWhatsAppServer();

afterAll(() => server[Symbol.asyncDispose]());

const ALICE = { chat: '777@lid', alt: '4915112345@s.whatsapp.net' };
const GROUP = { chat: '1234@g.us', participant: '777@lid', participantAlt: ALICE.alt };
const OWN_JID = `${OWN.number}@s.whatsapp.net`;
const { Type } = proto.Message.ProtocolMessage;

const edited = (id: string, conversation: string): proto.IMessage => ({
  editedMessage: {
    message: {
      protocolMessage: { type: Type.MESSAGE_EDIT, key: { id }, editedMessage: { conversation } },
    },
  },
});
const deleted = (id: string): proto.IMessage => ({
  protocolMessage: { type: Type.REVOKE, key: { id, fromMe: true } },
});
const reacted = (id: string, text: string): proto.IMessage => ({
  reactionMessage: { key: { id, fromMe: false }, text },
});

describe('a message on WhatsApp', () => {
  it('that is changed or deleted is named by the id it had', async () => {
    await using rig = await openInboxRig();
    await rig.put(
      { ...ALICE, id: 'ONE', text: 'first' },
      { ...ALICE, id: 'TWO', message: edited('ONE', 'better') },
      { ...ALICE, id: 'THREE', message: deleted('ONE') },
    );
    await rig.drained();
    const [first, second, third] = rig.host.entries;
    const id = first?.message.id;
    expect(second).toMatchObject({
      kind: 'queue',
      message: { text: 'better', amends: { id, kind: 'edited' } },
    });
    expect(third).toMatchObject({
      kind: 'queue',
      message: { text: '', amends: { id, kind: 'withdrawn' } },
    });
    expect(first?.message.sender).toEqual(third?.message.sender);
  });

  it('of somebody else in a group cannot be named by another author', async () => {
    await using rig = await openInboxRig();
    await rig.put(
      { ...GROUP, id: 'ONE', text: 'first' },
      {
        ...GROUP,
        participant: '888@lid',
        participantAlt: '49888@s.whatsapp.net',
        id: 'X',
        message: deleted('ONE'),
      },
    );
    await rig.drained();
    const [first, second] = rig.host.entries.map(({ message }) => message);
    expect(second?.amends?.id).not.toBe(first?.id);
    expect(second?.sender).not.toEqual(first?.sender);
  });

  it('of ours that is reacted to is named, as often as the reaction changes', async () => {
    await using rig = await openInboxRig();
    rig.ours.add('OURS');
    await rig.put(
      { ...ALICE, id: 'ONE', message: reacted('OURS', '👎') },
      { ...ALICE, id: 'TWO', message: reacted('OURS', '') },
      { ...GROUP, id: 'THREE', message: reacted('OURS', '❤️') },
    );
    await rig.drained();
    expect(rig.host.entries).toMatchObject([
      { kind: 'queue', message: { reaction: { to: 'OURS', emoji: '👎' }, addressing: 'direct' } },
      { kind: 'queue', message: { reaction: { to: 'OURS' } } },
      { kind: 'queue', message: { reaction: { to: 'OURS', emoji: '❤️' }, addressing: 'reply' } },
    ]);
  });

  it('is not what we react ourselves, wherever that is seen again', async () => {
    await using rig = await openInboxRig({ selfChat: true, ownerPauseMins: 60 });
    for (const id of ['SIGN', 'QUESTION']) rig.ours.add(id);
    const sign = { id: 'SIGN', fromMe: true, message: reacted('QUESTION', '👀') };
    await rig.put({ ...sign, chat: OWN_JID }, { ...ALICE, ...sign }, { ...GROUP, ...sign });
    await rig.put({ ...ALICE, text: 'after' });
    await rig.drained();
    expect(rig.host.texts()).toEqual(['after']);
    expect(rig.host.entries).toHaveLength(1);
  });

  it('of others that is reacted to is nothing to us', async () => {
    await using rig = await openInboxRig();
    await rig.put({ ...GROUP, message: reacted('THEIRS', '👎') }, { ...ALICE, text: 'after' });
    await rig.drained();
    expect(rig.host.entries).toHaveLength(1);
  });

  it('that is changed while the owner answers by hand stays the owner’s', async () => {
    await using rig = await openInboxRig({ ownerPauseMins: 60 });
    await rig.put({ ...ALICE, id: 'ONE', text: 'first', ago: 1000 });
    await rig.drained();
    await rig.put({ ...ALICE, fromMe: true, text: 'I am on it' });
    await rig.put({ ...ALICE, id: 'TWO', message: edited('ONE', 'better') });
    await rig.drained();
    expect(rig.host.gates()).toContain('the owner answers here');
  });
});

describe('over a real session', () => {
  it('what a contact changes, deletes and reacts to comes in, and what we delete is gone there', async () => {
    await using rig = await startLiveRig(server);
    const anna = await server.contact(rig.phone, { name: 'Anna' });
    const id = await anna.writes('first');
    const first = await rig.host.until(({ entries }) => entries[0]?.message);
    const answer = { id: messageId('turn/0'), chat: first.chat, markdown: 'An answer.' };
    const context = sending();
    await rig.channel.send(answer, context);
    const ours = await anna.sees(({ text }) => text === 'An answer.');
    await anna.writes('', { message: edited(id, 'better') });
    await anna.writes('', { message: deleted(id) });
    await anna.writes('', { message: reacted(ours.id, '👍') });
    const came = await rig.host.until(({ entries }) => entries.length === 4 && entries);
    expect(came.slice(1).map(({ message: { amends, reaction } }) => amends ?? reaction)).toEqual([
      { id: first.id, kind: 'edited' },
      { id: first.id, kind: 'withdrawn' },
      { to: context.parts[0], emoji: '👍' },
    ]);
    const signal = AbortSignal.timeout(45_000);
    await rig.channel.retracting?.retract(first.chat, context.parts, signal);
    await anna.sees(({ id: seen, revoked }) => seen === ours.id && revoked);
  });
});

// What comes in, from the server to the host: the whole channel with real sessions.

import { describe, expect, it } from 'vitest';
import { createUndecryptable } from '../../../src/channels/whatsapp/undecryptable.ts';
import { createMemoryHost } from '../../support/memory-host.ts';
import { createMovableClock } from '../../support/movable-clock.ts';
import { BaileysClient, linkedAuth } from '../../support/whatsapp-server/baileys-client.ts';
import type { Addressing, Contact } from '../../support/whatsapp-server/contract.ts';
import { trustedWhatsAppServer } from '../../support/whatsapp-server/trusted.ts';
import { type LiveRig, startLiveRig } from './live-rig.ts';

const server = await trustedWhatsAppServer();
const HOUR_MS = 3_600_000;

const LID_ALONE: Addressing = { by: 'lid', withAlt: false };
const NUMBER_ALONE: Addressing = { by: 'number', withAlt: false };
const BOTH: Addressing = { by: 'lid', withAlt: true };
const BOTH_TURNED: Addressing = { by: 'number', withAlt: true };

const came = ({ host }: LiveRig, count: number) =>
  host.until(({ entries }) => entries.length >= count && entries.map(({ message }) => message));
const idsOf = ({ number, lid }: Contact) => ({ number: `+${number}`, lid: `${lid}@lid` });

describe('one person under changing addresses', () => {
  it('is one person in one chat, before and after the number is known', async () => {
    await using rig = await startLiveRig(server);
    const alice = await server.contact(rig.phone, { name: 'Alice' });
    const { number, lid } = idsOf(alice);
    await alice.writes('1', { addressing: LID_ALONE });
    await alice.writes('2', { addressing: LID_ALONE, device: 2 });
    await came(rig, 2);
    await alice.writes('3', { addressing: BOTH });
    await alice.writes('4', { addressing: NUMBER_ALONE });
    await alice.writes('5', { addressing: BOTH_TURNED, device: 2 });
    await alice.writes('6', { addressing: LID_ALONE });
    const messages = await came(rig, 6);
    expect(messages.map(({ text }) => text)).toEqual(['1', '2', '3', '4', '5', '6']);
    expect(new Set(messages.map(({ chat }) => chat.chat))).toEqual(new Set([lid]));
    for (const { sender } of messages.slice(2)) {
      expect(sender).toMatchObject({ id: number, alsoKnownAs: [lid], name: 'Alice' });
    }
  });

  it('is one person where no message tells both ids, as the server does when asked', async () => {
    await using rig = await startLiveRig(server);
    const alice = await server.contact(rig.phone);
    const { number, lid } = idsOf(alice);
    await alice.writes('1', { addressing: NUMBER_ALONE });
    await came(rig, 1);
    await alice.writes('2', { addressing: LID_ALONE });
    for (const { chat, sender } of await came(rig, 2)) {
      expect(chat.chat).toBe(number);
      expect(sender).toMatchObject({ id: number, alsoKnownAs: [lid] });
    }
  });

  it('is the same person in a group', async () => {
    await using rig = await startLiveRig(server);
    const alice = await server.contact(rig.phone, { name: 'Alice' });
    const { number, lid } = idsOf(alice);
    await alice.writes('hello', { addressing: BOTH_TURNED });
    const group = await server.group(rig.phone, [alice]);
    await group.says(alice, 'all of you', { addressing: LID_ALONE, device: 1 });
    const messages = await came(rig, 2);
    expect(messages.find(({ text }) => text === 'all of you')).toMatchObject({
      chat: { chat: group.jid },
      addressing: 'ambient',
      sender: { id: number, alsoKnownAs: [lid] },
    });
  });
});

describe('messages from the time we were away', () => {
  it('come in the server’s order, each once, also when they are replayed', async () => {
    await using rig = await startLiveRig(server);
    const alice = await server.contact(rig.phone);
    await alice.writes('before');
    await came(rig, 1);
    await rig.stop();
    const now = Date.now();
    const ids: string[] = [];
    for (let index = 0; index < 30; index += 1) {
      const at = now - 60_000 + (index % 2 === 0 ? index : index - 8) * 1000;
      ids.push(await alice.writes(String(at), { at }));
    }
    await rig.start();
    const messages = await came(rig, 31);
    const texts = messages.slice(1).map(({ text }) => text);
    expect(texts).toEqual(texts.toSorted());
    for (const id of ids) await alice.sendAgain(id);
    await alice.writes('behind them');
    await rig.host.until((host) => host.texts().includes('behind them'));
    expect(rig.host.entries).toHaveLength(32);
    expect(rig.host.duplicates).toBe(30);
  });

  it('are recorded and not answered when they are too old', async () => {
    await using rig = await startLiveRig(server, { maxAgeHours: 24 });
    const alice = await server.contact(rig.phone);
    const at = Date.now() - 25 * HOUR_MS;
    for (let index = 0; index < 100; index += 1) await alice.writes(`old ${index}`, { at });
    await alice.writes('new');
    await came(rig, 101);
    expect(rig.host.texts()).toEqual(['new']);
    expect(new Set(rig.host.gates())).toEqual(new Set(['too old']));
  });
});

describe('the owner’s phone', () => {
  it('silences the agent in the chat where the owner writes', async () => {
    await using rig = await startLiveRig(server);
    const alice = await server.contact(rig.phone);
    const bob = await server.contact(rig.phone);
    await alice.writes('hello');
    await came(rig, 1);
    await rig.phone.writesTo(alice, 'I take this one');
    await alice.writes('thanks');
    await bob.writes('and me?');
    await came(rig, 3);
    expect(rig.host.texts()).toEqual(['hello', 'and me?']);
    expect(rig.host.gates()).toEqual(['the owner answers here']);
  });

  it('speaks to the agent in the chat with itself where that is on', async () => {
    await using rig = await startLiveRig(server, { selfChat: true });
    await rig.phone.writesToSelf('remind me');
    const [message] = await came(rig, 1);
    expect(message).toMatchObject({
      text: 'remind me',
      chat: { chat: 'self' },
      sender: { id: 'self', alsoKnownAs: [`+${rig.phone.number}`, `${rig.phone.lid}@lid`] },
    });
  });
});

describe('somebody whose number WhatsApp does not tell', () => {
  it('is handed over under the LID alone, and the owner is told how to let them in', async () => {
    await using rig = await startLiveRig(server, { allowFrom: ['+4917012345'] });
    const bob = await server.contact(rig.phone, { name: 'Bob' });
    const { lid } = idsOf(bob);
    await bob.writes('hello?', { addressing: LID_ALONE });
    const alerts = await rig.host.until((host) => host.alerts.length > 0 && host.alerts);
    expect(alerts[0]).toContain(`nanobot pair approve whatsapp ${lid}`);
    expect(rig.host.entries[0]?.message.sender).toMatchObject({ id: lid, verified: 'verified' });
    expect(rig.host.entries[0]?.message.sender).toMatchObject({ alsoKnownAs: undefined });
  });
});

describe('a message that cannot be decrypted', () => {
  it('is reported by the library in a form that we recognise, and told with its sender', async () => {
    const phone = await server.phone();
    const auth = await linkedAuth(server, phone);
    const clock = createMovableClock();
    const host = createMemoryHost(clock);
    const undecryptable = createUndecryptable(host);
    const controller = new AbortController();
    const run = undecryptable.run(controller.signal);
    await using client = new BaileysClient(server, auth);
    using _ = undecryptable.attach(client.socket);
    await client.open();
    const alice = await server.contact(phone, { name: 'Alice' });
    await alice.writes('readable');
    await client.readsText('readable');
    server.fault({ direction: 'down', stanza: 'message', effect: { kind: 'corrupt' } });
    server.fault({ direction: 'up', stanza: 'receipt retry', times: 5, effect: { kind: 'drop' } });
    await alice.writes('broken');
    await alice.writes('readable again');
    await client.readsText('readable again');
    await clock.advance(6 * 60_000);
    expect(host.alerts).toEqual([
      expect.stringContaining(`could not read one message from Alice (+${alice.number})`),
    ]);
    controller.abort();
    await run;
  });
});

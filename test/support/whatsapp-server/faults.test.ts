// Each fault once, as an unmodified Baileys meets it.

import type { BinaryNode } from '@whiskeysockets/baileys';
import { expect, test, vi } from 'vitest';
import { BaileysClient, linkedAuth } from './baileys-client.ts';
import type { Phone } from './contract.ts';
import { trustedWhatsAppServer } from './trusted.ts';

const server = await trustedWhatsAppServer();

type Seen = AsyncDisposable & {
  readonly client: BaileysClient;
  readonly phone: Phone;
  readonly ibs: string[];
};

/** Logged in; `ibs` are the notices that came, in order. */
async function loggedIn(beforeLogin: () => void = () => undefined): Promise<Seen> {
  const phone = await server.phone();
  const auth = await linkedAuth(server, phone);
  beforeLogin();
  const client = new BaileysClient(server, auth);
  const ibs: string[] = [];
  client.socket.ws.on('CB:ib', ({ content }: BinaryNode) => {
    if (Array.isArray(content)) ibs.push(...content.map(({ tag }) => tag));
  });
  await client.open();
  // What the server sent before this answer has come as well.
  await client.roundTrip();
  return { client, phone, ibs, [Symbol.asyncDispose]: () => client[Symbol.asyncDispose]() };
}

test('a dropped stanza never comes', async () => {
  await using seen = await loggedIn(() =>
    server.fault({ direction: 'down', stanza: 'ib edge_routing', effect: { kind: 'drop' } }),
  );
  expect(seen.ibs).toEqual(['offline']);
});

test('a duplicated stanza comes twice, as often as was asked', async () => {
  await using seen = await loggedIn(() =>
    server.fault({ direction: 'down', stanza: 'ib', times: 2, effect: { kind: 'duplicate' } }),
  );
  expect(seen.ibs).toEqual(['edge_routing', 'edge_routing', 'offline', 'offline']);
});

test('a reordered stanza comes after the next of its kind', async () => {
  await using seen = await loggedIn(() =>
    server.fault({ direction: 'down', stanza: 'ib', effect: { kind: 'reorder' } }),
  );
  expect(seen.ibs).toEqual(['offline', 'edge_routing']);
});

test('a delayed stanza comes after those that followed it', async () => {
  await using seen = await loggedIn();
  const { client } = seen;
  server.fault({ direction: 'down', stanza: 'iq', effect: { kind: 'delay', ms: 50 } });
  const order: string[] = [];
  const slow = client.socket.fetchPrivacySettings(true).then(() => order.push('first'));
  const quick = client.socket.fetchBlocklist().then(() => order.push('second'));
  await Promise.all([slow, quick]);
  expect(order).toEqual(['second', 'first']);
});

test('a query that is lost on the way up is not answered, the next one is', async () => {
  await using seen = await loggedIn();
  const { client } = seen;
  server.fault({ direction: 'up', stanza: 'iq blocklist', effect: { kind: 'drop' } });
  const ping = (timeoutMs: number) =>
    client.socket.query(
      { tag: 'iq', attrs: { to: '@s.whatsapp.net', type: 'get', xmlns: 'blocklist' } },
      timeoutMs,
    );
  await expect(ping(100)).rejects.toThrow('Timed Out');
  expect((await ping(5_000)).attrs['type']).toBe('result');
});

test('a refused message is answered with the error and counted as not acknowledged', async () => {
  await using seen = await loggedIn();
  const { client } = seen;
  server.fault({ direction: 'up', stanza: 'message', effect: { kind: 'nack', code: 479 } });
  const answered = new Promise<BinaryNode>((resolve) =>
    client.socket.ws.once('CB:ack,class:message', resolve),
  );
  const to = '15550009999@s.whatsapp.net';
  await client.socket.sendNode({ tag: 'message', attrs: { id: 'M1', to, type: 'text' } });
  expect((await answered).attrs).toMatchObject({ id: 'M1', from: to, error: '479' });
  expect(seen.phone.outbound).toMatchObject([{ id: 'M1', to, acked: false }]);
});

test('what is held back goes on when the faults are cleared', async () => {
  await using seen = await loggedIn();
  const { client } = seen;
  server.fault({ direction: 'up', stanza: 'iq blocklist', effect: { kind: 'reorder' } });
  const asked = client.socket.fetchBlocklist();
  await client.socket.fetchPrivacySettings(true);
  server.clearFaults();
  expect(await asked).toEqual([]);
});

test('a message whose ciphertext was changed is asked for again, and then read', async () => {
  // The client's libsignal prints whole sessions when one is renewed.
  const quiet = vi.spyOn(console, 'info').mockReturnValue();
  const mute = vi.spyOn(console, 'warn').mockReturnValue();
  const phone = await server.phone();
  const contact = await server.contact(phone);
  await using client = await new BaileysClient(server, await linkedAuth(server, phone)).open();
  await client.history();
  await contact.writes('warm up');
  await client.readsText('warm up');
  server.fault({ direction: 'down', stanza: 'message', effect: { kind: 'corrupt' } });
  const id = await contact.writes('precious');
  await client.readsText('precious');
  expect(contact.deliveredIds).toContain(id);
  quiet.mockRestore();
  mute.mockRestore();
});

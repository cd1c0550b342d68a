// An unmodified Baileys on the vault, against the server: linked, restarted from disk, and written to
// from both sides at once.

import { afterAll, describe, expect, it } from 'vitest';
import { quietConsole } from '../../../src/channels/whatsapp/transport.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { BaileysClient } from '../../support/whatsapp-server/baileys-client.ts';
import { trustedWhatsAppServer } from '../../support/whatsapp-server/trusted.ts';
import { openRig, type Rig } from './vault-rig.ts';

const server = await trustedWhatsAppServer();
const quiet = quietConsole();
afterAll(() => quiet[Symbol.dispose]());

/** A socket as the link makes it: raw stanzas observed, changed credentials saved. */
function socketOn({ vault, ledger, makeRepository }: Rig): BaileysClient {
  const options = { makeSignalRepository: makeRepository };
  const client = new BaileysClient(server, vault.auth, options);
  client.socket.ws.prependListener('CB:message', (stanza) => ledger.observe(stanza));
  client.socket.ev.on('creds.update', () => void vault.save());
  return client;
}

async function link(folder: string) {
  const phone = await server.phone({ name: 'Ada' });
  await using rig = await openRig(folder);
  await using client = socketOn(rig);
  await phone.scan(await client.qr());
  expect((await client.closed()).code).toBe(515);
  await rig.vault.save();
  return phone;
}

async function textsIn({ ledger }: Rig): Promise<string[]> {
  const rows = await ledger.list(1000);
  return rows.map(({ message }) => message.conversation || message.extendedTextMessage?.text || '');
}

describe('Baileys on the vault', () => {
  it('is linked once, and logs in from disk after each restart', async () => {
    const folder = await temporaryFolder();
    const phone = await link(folder);
    for (let start = 1; start <= 3; start += 1) {
      await using rig = await openRig(folder);
      expect(rig.vault.account).toMatchObject({ number: phone.number, lid: phone.lid });
      await using client = await socketOn(rig).open();
      await phone.online();
      await rig.vault.confirm();
      await client.roundTrip();
      await client[Symbol.asyncDispose]();
      await phone.offline();
      expect(rig.vault.health()).toMatchObject({ damagedRecords: 0 });
    }
    expect(phone.counts).toMatchObject({ logins: 3, registrations: 1 });
  });

  it('stores a message before the other side sees it delivered, and a queued one as well', async () => {
    const folder = await temporaryFolder();
    const phone = await link(folder);
    const ben = await server.contact(phone, { name: 'Ben' });
    const first = await (async () => {
      await using rig = await openRig(folder);
      await using client = await socketOn(rig).open();
      await phone.online();
      const id = await ben.writes('hello');
      await client.readsText('hello');
      expect(await textsIn(rig)).toEqual(['hello']);
      expect(ben.deliveredIds).toContain(id);
      return id;
    })();
    await phone.offline();
    const second = await ben.writes('are you there?');

    await using rig = await openRig(folder);
    await using client = await socketOn(rig).open();
    await client.readsText('are you there?');
    const rows = await rig.ledger.list(10);
    expect(rows.map(({ key }) => key.id)).toEqual([first, second]);
    expect(rows[1]?.key).toMatchObject({ remoteJid: `${ben.lid}@lid`, fromMe: false });
    expect(rows[1]?.pushName).toBe('Ben');
    await client.socket.sendMessage(`${ben.lid}@lid`, { text: 'here I am' });
    await ben.sees(({ text }) => text === 'here I am');
    await client[Symbol.asyncDispose]();
    await phone.offline();
  });

  it('understands everything when both sides write at once, 100 times', async () => {
    const folder = await temporaryFolder();
    const phone = await link(folder);
    const ben = await server.contact(phone, { name: 'Ben' });
    await using rig = await openRig(folder);
    await using client = await socketOn(rig).open();
    await phone.online();
    const rounds = Array.from({ length: 100 }, (_, n) => n);
    const chat = `${ben.lid}@lid`;
    await Promise.all([
      (async () => {
        for (const n of rounds) await ben.writes(`in ${n}`);
      })(),
      (async () => {
        for (const n of rounds) await client.socket.sendMessage(chat, { text: `out ${n}` });
      })(),
    ]);
    await ben.sees(({ text }) => text === 'out 99');
    await client.readsText('in 99');
    expect(ben.undecryptable).toBe(0);
    const texts = await textsIn(rig);
    expect(rounds.map((n) => `in ${n}`).filter((text) => !texts.includes(text))).toEqual([]);
    expect(texts).toHaveLength(100);
    expect(rig.ledger.stalledMs()).toBeUndefined();
    await client[Symbol.asyncDispose]();
    await phone.offline();
  });
});

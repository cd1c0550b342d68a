// Signal sessions under crossing traffic, bad ciphertexts and a store that fails.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { quietConsole } from '../../../src/channels/whatsapp/transport.ts';
import type { KeyValueStore } from '../../../src/kernel/bus/store/store.ts';
import { campaign } from '../../support/campaign.ts';
import { createMovableClock } from '../../support/movable-clock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  type Sealed,
  SignalDevice,
  toSession,
} from '../../support/whatsapp-server/signal-device.ts';
import {
  acquaint,
  bundleOf,
  encryptFor,
  markLinked,
  OWN,
  openRig,
  type Rig,
  receive,
  rowsOf,
  stanzaOf,
} from './vault-rig.ts';

const BEN = '7000001@lid';
const CARA = '7000002@lid';

const quiet = { console: undefined as ReturnType<typeof quietConsole> | undefined };
beforeAll(() => {
  quiet.console = quietConsole();
});
afterAll(() => quiet.console?.[Symbol.dispose]());

async function linkedRig(
  folder: string,
  options: Parameters<typeof openRig>[1] = {},
): Promise<Rig> {
  const rig = await openRig(folder, options);
  markLinked(rig.vault.auth.creds);
  await rig.vault.save();
  return rig;
}

/** Counts transactions, and can be made to fail. */
function watched() {
  const watch = {
    writes: [] as (readonly string[])[],
    isFull: false,
    wrap: (state: KeyValueStore): KeyValueStore => ({
      ...state,
      async setMany(rows) {
        if (watch.isFull) throw new Error('no space left');
        watch.writes.push(rows.map(({ key }) => key));
        await state.setMany(rows);
      },
    }),
  };
  return watch;
}

/** A store whose answers are on their way for a while: what was read may be outdated. */
function slow(state: KeyValueStore): KeyValueStore {
  const jitter = createJitter(3);
  return {
    ...state,
    async get(key) {
      const value = await state.get(key);
      await jitter();
      return value;
    },
    async setMany(rows) {
      await jitter();
      await state.setMany(rows);
    },
  };
}

/** Pauses of none to three event-loop turns, the same in each run. */
function createJitter(seed: number) {
  let state = seed;
  return async () => {
    state = (state * 1103515245 + 12345) % 2147483648;
    for (let turn = (state >> 8) % 4; turn > 0; turn -= 1)
      await new Promise((next) => setImmediate(next));
  };
}

describe('the session repository', () => {
  it('reads hundreds of messages each way that cross in one chat, as Baileys sends them', async () => {
    await using rig = await linkedRig(await temporaryFolder(), { wrap: slow });
    const connection = rig.connect();
    const ben = new SignalDevice();
    await acquaint(rig, connection, ben, BEN);
    const read: string[] = [];
    const readByBen: string[] = [];
    const count = campaign({ short: 200, full: 600 });

    async function benWrites() {
      const jitter = createJitter(1);
      for (let n = 0; n < count; n += 1) {
        await jitter();
        const sealed = await ben.encrypt(OWN.lid, { conversation: `in ${n}` });
        await jitter();
        read.push(await receive(rig, connection, stanzaOf(`in-${n}`, BEN, sealed)));
      }
    }
    async function weWrite() {
      const jitter = createJitter(2);
      for (let n = 0; n < count; n += 1) {
        await jitter();
        // Baileys holds a transaction of its own around everything from the first look to the send.
        const sealed = await connection.keys.transaction(async () => {
          await connection.repository.validateSession(BEN);
          await jitter();
          const one = await encryptFor(connection, BEN, `out ${n}`);
          await jitter();
          return one;
        }, OWN.id);
        readByBen.push((await ben.decrypt(OWN.lid, sealed)).conversation ?? '');
      }
    }
    await Promise.all([benWrites(), weWrite()]);

    expect(read).toEqual(Array.from({ length: count }, (_, n) => `in ${n}`));
    expect(readByBen).toEqual(Array.from({ length: count }, (_, n) => `out ${n}`));
    expect(await rig.ledger.list(2000)).toHaveLength(count + 1);
  });

  it('keeps a fresh session readable that a message of the session before was tried on', async () => {
    await using rig = await linkedRig(await temporaryFolder());
    const connection = rig.connect();
    const ben = new SignalDevice();
    await acquaint(rig, connection, ben, BEN);
    const crossing: Sealed[] = [];
    for (const text of ['first', 'second'])
      crossing.push(await ben.encrypt(OWN.lid, { conversation: text }));
    // What the library does for somebody whose device list it does not have.
    await connection.repository.injectE2ESession({
      jid: BEN,
      session: toSession(ben.bundle()),
    });
    const read: string[] = [];
    for (const [n, sealed] of crossing.entries())
      read.push(await receive(rig, connection, stanzaOf(`X${n}`, BEN, sealed)));
    expect(read).toEqual(['first', 'second']);
    const answer = await encryptFor(connection, BEN, 'can you read this?');
    expect(answer.type).toBe('pkmsg');
    expect((await ben.decrypt(OWN.lid, answer)).conversation).toBe('can you read this?');
    const sealed = await ben.encrypt(OWN.lid, { conversation: 'yes' });
    expect(await receive(rig, connection, stanzaOf('X9', BEN, sealed))).toBe('yes');
  });

  it('keeps a session small that has gone back and forth for long, and reads what was late, but nothing twice', async () => {
    await using rig = await linkedRig(await temporaryFolder());
    const connection = rig.connect();
    const ben = new SignalDevice();
    await acquaint(rig, connection, ben, BEN);
    const sizes: number[] = [];
    let late: Sealed | undefined;
    let old: Sealed | undefined;
    for (let n = 0; n < 60; n += 1) {
      await ben.decrypt(OWN.lid, await encryptFor(connection, BEN, `out ${n}`));
      if (n === 5) late = await ben.encrypt(OWN.lid, { conversation: 'late' });
      const sealed = await ben.encrypt(OWN.lid, { conversation: `in ${n}` });
      if (n === 40) old = sealed;
      expect(await receive(rig, connection, stanzaOf(`B${n}`, BEN, sealed))).toBe(`in ${n}`);
      sizes.push((await rig.rows.get('key/session/7000001_1.0'))?.length ?? 0);
    }
    expect((sizes.at(-1) ?? 0) - (sizes[30] ?? 0)).toBeLessThan(100);
    if (late === undefined || old === undefined) throw new Error('no late message');
    await expect(receive(rig, connection, stanzaOf('B40', BEN, old))).rejects.toThrow();
    expect(await receive(rig, connection, stanzaOf('B99', BEN, late))).toBe('late');
    const next = await ben.encrypt(OWN.lid, { conversation: 'next' });
    expect(await receive(rig, connection, stanzaOf('B100', BEN, next))).toBe('next');
  });

  it('writes the message, the ratchet and the used-up pre-key in one transaction', async () => {
    const watch = watched();
    await using rig = await linkedRig(await temporaryFolder(), { wrap: watch.wrap });
    const connection = rig.connect();
    const ben = new SignalDevice();
    const bundle = await bundleOf(rig.vault, connection);
    await ben.startSession(OWN.lid, bundle);
    const sealed = await ben.encrypt(OWN.lid, { conversation: 'hello' });
    watch.writes.length = 0;
    await receive(rig, connection, stanzaOf('A1', BEN, sealed));
    expect(watch.writes).toHaveLength(1);
    expect(watch.writes[0]?.toSorted()).toEqual([
      'inbox/000000000000001',
      'key/identity-key/7000001_1.0',
      `key/pre-key/${String(bundle.preKey?.id).padStart(8, '0')}`,
      'key/session/7000001_1.0',
    ]);
    const [row] = await rig.ledger.list(10);
    expect(row).toMatchObject({ key: { remoteJid: BEN, id: 'A1', fromMe: false } });
    expect(row?.message.conversation).toBe('hello');
  });

  it('leaves no trace of a message that cannot be decrypted', async () => {
    await using rig = await linkedRig(await temporaryFolder());
    const connection = rig.connect();
    const ben = new SignalDevice();
    await acquaint(rig, connection, ben, BEN);
    const before = await rowsOf(rig.rows);
    const sealed = await ben.encrypt(OWN.lid, { conversation: 'torn' });
    const torn = Buffer.from(sealed.ciphertext);
    torn[torn.length - 3] = (torn[torn.length - 3] ?? 0) ^ 1;
    const stanza = stanzaOf('A2', BEN, { ...sealed, ciphertext: torn });
    await expect(receive(rig, connection, stanza)).rejects.toThrow();
    expect(await rowsOf(rig.rows)).toEqual(before);
    expect(await receive(rig, connection, stanzaOf('A2', BEN, sealed))).toBe('torn');
  });

  it('keeps a session although a stranger writes under the same address', async () => {
    await using rig = await linkedRig(await temporaryFolder());
    const connection = rig.connect();
    const ben = new SignalDevice();
    await acquaint(rig, connection, ben, BEN);
    const before = await rowsOf(rig.rows);
    const stranger = new SignalDevice();
    const bundle = await bundleOf(rig.vault, connection);
    const wrongKey = new SignalDevice().bundle().preKey;
    await stranger.startSession(OWN.lid, { ...bundle, preKey: wrongKey });
    const junk = await stranger.encrypt(OWN.lid, { conversation: 'junk' });
    await expect(receive(rig, connection, stanzaOf('X', BEN, junk))).rejects.toThrow();
    const session = 'key/session/7000001_1.0';
    expect(await rig.rows.get(session)).toBe(before.get(session));
    const sealed = await ben.encrypt(OWN.lid, { conversation: 'still me' });
    expect(await receive(rig, connection, stanzaOf('A3', BEN, sealed))).toBe('still me');
  });

  it('shares one transaction among calls of many chats, each durable when it returns', async () => {
    const watch = watched();
    await using rig = await linkedRig(await temporaryFolder(), { wrap: watch.wrap });
    const connection = rig.connect();
    const chats = Array.from({ length: 40 }, (_, n) => `${7100000 + n}@lid`);
    const people = chats.map(() => new SignalDevice());
    for (const [n, person] of people.entries()) {
      await acquaint(rig, connection, person, chats[n] ?? '');
    }
    watch.writes.length = 0;
    const sealed = await Promise.all(chats.map((jid) => encryptFor(connection, jid, 'to all')));
    expect(watch.writes.length).toBeLessThanOrEqual(3);
    expect(watch.writes.flat().filter((key) => key.startsWith('key/session/'))).toHaveLength(40);
    for (const [n, person] of people.entries()) {
      const one = sealed[n];
      if (one !== undefined) {
        expect((await person.decrypt(OWN.lid, one)).conversation).toBe('to all');
      }
    }
  });

  it('answers other chats while nobody says whose number a message came from', async () => {
    const clock = createMovableClock();
    await using rig = await linkedRig(await temporaryFolder(), { clock });
    const asked: string[][] = [];
    const connection = rig.connect((numbers) => {
      asked.push(numbers);
      return new Promise(() => {});
    });
    const ben = new SignalDevice();
    const cara = new SignalDevice();
    await acquaint(rig, connection, cara, CARA);
    const number = '15550009@s.whatsapp.net';
    await ben.startSession(OWN.id, await bundleOf(rig.vault, connection));
    const slow = await ben.encrypt(OWN.id, { conversation: 'from a number' });
    const waiting = receive(rig, connection, stanzaOf('A1', number, slow));
    const sealed = await cara.encrypt(OWN.lid, { conversation: 'meanwhile' });
    expect(await receive(rig, connection, stanzaOf('A2', CARA, sealed))).toBe('meanwhile');
    await clock.advance(5_000);
    expect(await waiting).toBe('from a number');
    expect(asked).toEqual([[number]]);
  });

  it('lets a session stay deleted that Baileys deletes while it is in use', async () => {
    await using rig = await linkedRig(await temporaryFolder());
    const connection = rig.connect();
    const ben = new SignalDevice();
    await acquaint(rig, connection, ben, BEN);
    const address = connection.repository.jidToSignalProtocolAddress(BEN);
    const encrypting = encryptFor(connection, BEN, 'under way');
    const deleting = connection.keys.set({ session: { [address]: null } });
    const later = connection.repository.validateSession(BEN);
    await Promise.all([encrypting, deleting]);
    expect(await later).toMatchObject({ exists: false });
    expect(await connection.keys.get('session', [address])).toEqual({});
  });

  it('heals a damaged session with the next message that opens a new one', async () => {
    await using rig = await linkedRig(await temporaryFolder());
    const connection = rig.connect();
    const ben = new SignalDevice();
    await acquaint(rig, connection, ben, BEN);
    const row = 'key/session/7000001_1.0';
    await rig.rows.set(row, ((await rig.rows.get(row)) ?? '').slice(0, -20));
    const sealed = await ben.encrypt(OWN.lid, { conversation: 'lost' });
    await expect(receive(rig, connection, stanzaOf('A1', BEN, sealed))).rejects.toThrow(
      'No session record',
    );
    expect(rig.vault.health().damagedRecords).toBe(1);
    await ben.startSession(OWN.lid, await bundleOf(rig.vault, connection));
    const again = await ben.encrypt(OWN.lid, { conversation: 'again' });
    expect(await receive(rig, connection, stanzaOf('A1', BEN, again))).toBe('again');
    expect(rig.vault.health().damagedRecords).toBe(0);
  });

  it('leaves a message unanswered that cannot be stored, until the connection ends', async () => {
    const watch = watched();
    await using rig = await linkedRig(await temporaryFolder(), { wrap: watch.wrap });
    const connection = rig.connect();
    const ben = new SignalDevice();
    await acquaint(rig, connection, ben, BEN);
    const sealed = await ben.encrypt(OWN.lid, { conversation: 'no room' });
    watch.isFull = true;
    const settled = { is: false };
    const receiving = receive(rig, connection, stanzaOf('A1', BEN, sealed));
    receiving.catch(() => {}).finally(() => Object.assign(settled, { is: true }));
    await expect(encryptFor(connection, BEN, 'nor for this')).rejects.toMatchObject({
      code: 'whatsapp_not_saved',
    });
    expect(settled.is).toBe(false);
    connection.repository.close?.();
    await expect(receiving).rejects.toMatchObject({ code: 'whatsapp_not_saved' });
    watch.isFull = false;
    // The server sends it again on the next connection.
    expect(await receive(rig, rig.connect(), stanzaOf('A1', BEN, sealed))).toBe('no room');
  });

  it('reads and writes in groups', async () => {
    await using rig = await linkedRig(await temporaryFolder());
    const connection = rig.connect();
    const group = '120363@g.us';
    const ben = new SignalDevice();
    const said = await ben.encryptForGroup(group, BEN, { conversation: 'all of you' });
    await connection.repository.processSenderKeyDistributionMessage({
      authorJid: BEN,
      item: { groupId: group, axolotlSenderKeyDistributionMessage: said.senderKey },
    });
    const stanza = stanzaOf(
      'G1',
      group,
      { type: 'skmsg', ciphertext: said.ciphertext },
      {
        participant: BEN,
      },
    );
    rig.ledger.observe(stanza);
    const msg = stanza.content[0]?.content;
    if (!(msg instanceof Uint8Array)) throw new Error('no ciphertext');
    await connection.repository.decryptGroupMessage({ group, authorJid: BEN, msg });
    const [row] = await rig.ledger.list(1);
    expect(row).toMatchObject({ key: { remoteJid: group, participant: BEN, id: 'G1' } });

    const ours = await connection.repository.encryptGroupMessage({
      group,
      meId: OWN.lid,
      data: Buffer.from('0a02686904040404', 'hex'),
    });
    await ben.learnSenderKey(OWN.lid, {
      groupId: group,
      axolotlSenderKeyDistributionMessage: ours.senderKeyDistributionMessage,
    });
    const heard = await ben.decryptFromGroup(group, OWN.lid, ours.ciphertext);
    expect(heard.conversation).toBe('hi');
  });

  it('uses no keys for a connection that has ended', async () => {
    await using rig = await linkedRig(await temporaryFolder());
    const connection = rig.connect();
    const ben = new SignalDevice();
    await acquaint(rig, connection, ben, BEN);
    const sealed = await ben.encrypt(OWN.lid, { conversation: 'just missed' });
    const before = await rowsOf(rig.rows);
    connection.repository.close?.();
    await expect(encryptFor(connection, BEN, 'to nobody')).rejects.toThrow('has ended');
    await expect(receive(rig, connection, stanzaOf('A1', BEN, sealed))).rejects.toThrow();
    expect(await rowsOf(rig.rows)).toEqual(before);
    expect(await receive(rig, rig.connect(), stanzaOf('A1', BEN, sealed))).toBe('just missed');
  });

  it('writes nothing for credentials that were replaced', async () => {
    await using rig = await linkedRig(await temporaryFolder());
    const old = rig.connect();
    const ben = new SignalDevice();
    await acquaint(rig, old, ben, BEN);
    const sealed = await ben.encrypt(OWN.lid, { conversation: 'too late' });
    await rig.vault.reset();
    await expect(receive(rig, old, stanzaOf('A1', BEN, sealed))).rejects.toMatchObject({
      code: 'whatsapp_link_replaced',
    });
    await old.keys.set({ session: { x: Buffer.from('x') } });
    expect(await rowsOf(rig.rows, 'key/')).toEqual(new Map());
  });
});

// Credentials and keys over damage, crashes and new links, on the real store.

import { encodeSignedDeviceIdentity, initAuthCreds } from '@whiskeysockets/baileys';
import { describe, expect, it } from 'vitest';
import { openFreshVault, openVault } from '../../../src/channels/whatsapp/vault.ts';
import type { KeyValueStore } from '../../../src/kernel/bus/store/store.ts';
import { ChannelError } from '../../../src/kernel/message/errors.ts';
import { type LogFields, silentLogger } from '../../../src/lib/logger.ts';
import { createMovableClock } from '../../support/movable-clock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { markLinked, openRig, type Rig, rowsOf } from './vault-rig.ts';

const clock = createMovableClock();

/** Runs with a rig that is opened on the folder and closed again, like a process. */
async function inOneRun<T>(folder: string, work: (rig: Rig) => Promise<T>): Promise<T> {
  await using rig = await openRig(folder, { clock });
  return await work(rig);
}

/** A link with as many generations as names were given, the last being the newest. */
async function link(folder: string, names: readonly string[], opened: readonly string[] = []) {
  await inOneRun(folder, async ({ vault }) => {
    markLinked(vault.auth.creds);
    for (const name of names) {
      vault.auth.creds.lastPropHash = name;
      await (opened.includes(name) ? vault.confirm() : vault.save());
    }
  });
}

async function damage(rows: KeyValueStore, key: string): Promise<void> {
  const value = (await rows.get(key)) ?? '';
  await rows.set(key, value.slice(0, value.length / 2));
}

async function credsKeys(rows: KeyValueStore): Promise<string[]> {
  return [...(await rowsOf(rows, 'creds/')).keys()];
}

describe('credentials', () => {
  it('are nothing but a fresh identity before the first pairing, and leave no row', async () => {
    await inOneRun(await temporaryFolder(), async ({ vault, rows }) => {
      expect(vault.account).toBeUndefined();
      await vault.save();
      expect(vault.health()).toEqual({ generation: 0, damagedRecords: 0 });
      expect(await rowsOf(rows)).toEqual(new Map());
    });
  });

  it('survive a restart with everything Baileys put into them', async () => {
    const folder = await temporaryFolder();
    const before = await inOneRun(folder, async ({ vault }) => {
      markLinked(vault.auth.creds);
      vault.auth.creds.routingInfo = Buffer.from('route');
      await vault.save();
      return vault.auth.creds;
    });
    await inOneRun(folder, async ({ vault }) => {
      const { creds } = vault.auth;
      expect(vault.account).toEqual({ number: '15550001', lid: '9000001', name: 'Ada' });
      expect(creds.noiseKey).toEqual({
        public: Buffer.from(before.noiseKey.public),
        private: Buffer.from(before.noiseKey.private),
      });
      expect(creds.routingInfo).toEqual(Buffer.from('route'));
      const identity = (one: typeof creds) => encodeSignedDeviceIdentity(one.account ?? {}, true);
      expect(identity(creds)).toEqual(identity(before));
    });
  });

  it('are written when their content changed and at no other time', async () => {
    await inOneRun(await temporaryFolder(), async ({ vault }) => {
      markLinked(vault.auth.creds);
      await vault.save();
      await vault.save();
      expect(vault.health().generation).toBe(1);
      vault.auth.creds.lastPropHash = 'new';
      await Promise.all([vault.save(), vault.save()]);
      expect(vault.health().generation).toBe(2);
    });
  });

  it('are kept in three generations and the newest one that opened a connection', async () => {
    const folder = await temporaryFolder();
    await link(folder, ['1', '2', '3', '4', '5', '6', '7'], ['2', '3']);
    await inOneRun(folder, async ({ vault, rows }) => {
      const numbers = (await credsKeys(rows)).map((key) => Number(key.slice('creds/'.length)));
      expect(numbers).toEqual([3, 5, 6, 7]);
      expect(vault.health()).toMatchObject({ generation: 7, openedAt: clock.now() });
    });
  });

  it('come from the last generation that opened when the newest is damaged, and say so', async () => {
    const folder = await temporaryFolder();
    await link(folder, ['first', 'opened', 'later', 'newest'], ['opened']);
    await inOneRun(folder, ({ rows }) => damage(rows, 'creds/000000000004'));
    await inOneRun(folder, async ({ vault, rows }) => {
      expect(vault.auth.creds.lastPropHash).toBe('opened');
      expect(vault.health()).toMatchObject({ recoveredFrom: 4, generation: 5 });
      expect(await rowsOf(rows, 'creds-damaged/')).toHaveProperty('size', 1);
    });
    await inOneRun(folder, async ({ vault }) => {
      expect(vault.auth.creds.lastPropHash).toBe('opened');
      expect(vault.health().recoveredFrom).toBeUndefined();
    });
  });

  it('are never replaced by new ones because all are damaged or gone', async () => {
    const folder = await temporaryFolder();
    await link(folder, ['1', '2']);
    await inOneRun(folder, async ({ rows }) => {
      await damage(rows, 'creds/000000000001');
      await rows.set('creds/000000000002', '');
    });
    const before = await inOneRun(folder, async () => undefined).catch((error) => error);
    expect(before).toBeInstanceOf(ChannelError);
    expect(before).toMatchObject({ code: 'whatsapp_link_damaged', remedy: { kind: 'never' } });
    expect(before.message).toContain('nanobot channels login whatsapp');
  });

  it('begin anew after damage only when a person links again, and the rest is set aside', async () => {
    const folder = await temporaryFolder();
    await link(folder, ['1']);
    const store = await openRig(folder, { clock });
    await damage(store.rows, 'creds/000000000001');
    const deps = { state: store.rows, clock, log: silentLogger };
    await expect(openVault(deps)).rejects.toMatchObject({ code: 'whatsapp_link_damaged' });
    const vault = await openFreshVault(deps);
    expect(vault.account).toBeUndefined();
    expect(await credsKeys(store.rows)).toEqual([]);
    expect(await rowsOf(store.rows, 'old/')).toHaveProperty('size', 1);
    await store[Symbol.asyncDispose]();
  });

  it('of a pairing that was never completed are cleaned away at the next start', async () => {
    const folder = await temporaryFolder();
    const halfMade = await inOneRun(folder, async ({ vault }) => {
      vault.auth.creds.me = { id: '15550001@s.whatsapp.net', name: '~' };
      vault.auth.creds.pairingCode = 'ABCD1234';
      await vault.save();
      expect(vault.account).toBeUndefined();
      return vault.auth.creds;
    });
    await inOneRun(folder, async ({ vault, rows }) => {
      expect(vault.auth.creds.me).toBeUndefined();
      expect(vault.auth.creds.registrationId).not.toBe(halfMade.registrationId);
      expect(await rowsOf(rows)).toEqual(new Map());
    });
  });

  it('are not written any more by a vault that was closed', async () => {
    const folder = await temporaryFolder();
    await link(folder, ['1']);
    await inOneRun(folder, async ({ vault, rows }) => {
      const { creds, keys } = vault.auth;
      creds.lastPropHash = 'still in time';
      await Promise.all([vault.save(), vault.close()]);
      const before = await rowsOf(rows);
      creds.lastPropHash = 'too late';
      await vault.save();
      await keys.set({ session: { '1.0': Buffer.from('late') } });
      const late = vault.signalUnits(creds).run(async () => {});
      await expect(late).rejects.toMatchObject({ code: 'whatsapp_link_replaced' });
      expect(await rowsOf(rows)).toEqual(before);
    });
    await inOneRun(folder, async ({ vault }) => {
      expect(vault.auth.creds.lastPropHash).toBe('still in time');
    });
  });

  it('go back to the last generation that opened, once', async () => {
    const folder = await temporaryFolder();
    await link(folder, ['opened', 'bad'], ['opened']);
    await inOneRun(folder, async ({ vault }) => {
      expect(await vault.rollBack()).toBe(true);
      expect(vault.auth.creds.lastPropHash).toBe('opened');
      expect(await vault.rollBack()).toBe(false);
    });
    await inOneRun(folder, async ({ vault }) => {
      expect(vault.auth.creds.lastPropHash).toBe('opened');
      expect(await vault.rollBack()).toBe(false);
    });
  });
});

describe('a new link', () => {
  it('sets the old one aside whole, and keeps the newest three', async () => {
    await inOneRun(await temporaryFolder(), async ({ vault, rows }) => {
      for (let n = 1; n <= 5; n += 1) {
        markLinked(vault.auth.creds);
        await vault.auth.keys.set({ session: { [`person-${n}`]: Buffer.from('s') } });
        await vault.reset();
        expect(vault.account).toBeUndefined();
        expect(vault.auth.creds.me).toBeUndefined();
        await clock.advance(1000);
      }
      const kept = [...(await rowsOf(rows)).keys()].filter((key) => key.includes('/key/'));
      expect(kept.map((key) => key.split('/').at(-1))).toEqual([
        'person-3',
        'person-4',
        'person-5',
      ]);
    });
  });

  it('does not push a kept one out by attempts that were never completed', async () => {
    const folder = await temporaryFolder();
    await link(folder, ['real']);
    await inOneRun(folder, async ({ vault, rows }) => {
      await vault.reset();
      const kept = await rowsOf(rows);
      for (let n = 0; n < 5; n += 1) {
        await clock.advance(1000);
        vault.auth.creds.me = { id: '15550001@s.whatsapp.net' };
        await vault.save();
        await vault.reset();
      }
      expect(await rowsOf(rows)).toEqual(kept);
    });
  });
});

describe('keys', () => {
  it('of every kind come back as they were stored', async () => {
    const folder = await temporaryFolder();
    const pair = initAuthCreds().noiseKey;
    const stored = {
      'pre-key': { '7': pair },
      session: { '1.0': Buffer.from('session') },
      'sender-key': { 'g::1::0': Buffer.from('sender') },
      'sender-key-memory': { g: { 'a@lid': true } },
      'app-state-sync-key': { AAA: { keyData: Buffer.from('key'), timestamp: 5 } },
      'app-state-sync-version': {
        regular: { version: 3, hash: Buffer.from('h'), indexValueMap: {} },
      },
      'lid-mapping': { '15550002': '7000001' },
      'device-list': { '15550002': ['0', '4'] },
      tctoken: { 'a@lid': { token: Buffer.from('t'), timestamp: '1' } },
      'identity-key': { '1.0': Buffer.from('identity') },
    };
    await inOneRun(folder, ({ vault }) => Promise.resolve(vault.auth.keys.set(stored)));
    await inOneRun(folder, async ({ vault }) => {
      const { keys } = vault.auth;
      const plain = JSON.parse(JSON.stringify(stored));
      for (const type of Object.keys(stored) as (keyof typeof stored)[]) {
        const ids = Object.keys(stored[type]);
        const values = await keys.get(type, [...ids, 'absent']);
        expect(Object.keys(values)).toEqual(ids);
        if (type !== 'app-state-sync-key' && type !== 'pre-key') {
          expect(JSON.parse(JSON.stringify(values))).toEqual(plain[type]);
        }
      }
      const { AAA } = await keys.get('app-state-sync-key', ['AAA']);
      expect(Buffer.from(AAA?.keyData ?? [])).toEqual(Buffer.from('key'));
      const { '7': loaded } = await keys.get('pre-key', ['7']);
      expect(Buffer.from(loaded?.private ?? [])).toEqual(Buffer.from(pair.private));
      await keys.clear?.();
      expect(await keys.get('session', ['1.0'])).toEqual({});
    });
  });

  it('that are damaged are reported and logged once, without what is in them', async () => {
    const lines: [string, LogFields][] = [];
    const log = {
      ...silentLogger,
      error: (...line: [string, LogFields?]) => void lines.push([line[0], line[1] ?? {}]),
    };
    await using rig = await openRig(await temporaryFolder(), { log });
    const { keys } = rig.vault.auth;
    await keys.set({
      session: { '1.0': Buffer.from('ratchet'), '2.0': Buffer.from('whole') },
      'app-state-sync-key': { AAA: { keyData: Buffer.from('key') } },
    });
    await damage(rig.rows, 'key/session/1.0');
    await damage(rig.rows, 'key/app-state-sync-key/AAA');
    await keys.get('session', ['1.0']);
    expect(Object.keys(await keys.get('session', ['1.0', '2.0']))).toEqual(['2.0']);
    await expect(keys.get('app-state-sync-key', ['AAA'])).rejects.toMatchObject({
      code: 'whatsapp_key_damaged',
    });
    expect(rig.vault.health().damagedRecords).toBe(2);
    expect(lines).toEqual([
      ['stored WhatsApp key not readable', { type: 'session', id: '1.0' }],
      ['stored WhatsApp key not readable', { type: 'app-state-sync-key', id: 'AAA' }],
    ]);
    await keys.set({ session: { '1.0': Buffer.from('new') } });
    expect(rig.vault.health().damagedRecords).toBe(1);
  });

  it('are damage too when they stand under another name', async () => {
    await using rig = await openRig(await temporaryFolder());
    await rig.vault.auth.keys.set({ session: { '1.0': Buffer.from('one') } });
    await rig.rows.set('key/session/2.0', (await rig.rows.get('key/session/1.0')) ?? '');
    expect(await rig.vault.auth.keys.get('session', ['2.0'])).toEqual({});
    expect(rig.vault.health().damagedRecords).toBe(1);
  });
});

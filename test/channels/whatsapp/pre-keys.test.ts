// Pre-keys: what the server or a contact was given can be read, whenever the process dies.

import { describe, expect, it } from 'vitest';
import type { KeyValueStore } from '../../../src/kernel/bus/store/store.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { makePreKeys, markLinked, openRig, type Rig } from './vault-rig.ts';

async function linked(folder: string): Promise<Rig> {
  const rig = await openRig(folder);
  markLinked(rig.vault.auth.creds);
  await rig.vault.save();
  return rig;
}

async function storedIds(rows: KeyValueStore): Promise<number[]> {
  const found = await rows.list('key/pre-key/');
  return found.map(({ key }) => Number(key.slice('key/pre-key/'.length)));
}

describe('pre-keys', () => {
  it('are stored in the transaction that counts them', async () => {
    const transactions: (readonly string[])[] = [];
    const wrap = (state: KeyValueStore): KeyValueStore => ({
      ...state,
      async setMany(rows) {
        transactions.push(rows.map(({ key }) => key));
        await state.setMany(rows);
      },
    });
    await using rig = await openRig(await temporaryFolder(), { wrap });
    markLinked(rig.vault.auth.creds);
    await rig.vault.save();
    transactions.length = 0;
    const made = await makePreKeys(rig.vault, rig.connect(), 20);
    expect(Object.keys(made)).toHaveLength(20);
    const [transaction = [], ...others] = transactions;
    expect(others).toEqual([]);
    expect(transaction.filter((key) => key.startsWith('creds/'))).toEqual(['creds/000000000002']);
    // One more than was asked for: the spare one.
    expect(transaction.filter((key) => key.startsWith('key/pre-key/'))).toHaveLength(21);
  });

  it('are on disk before a retry receipt gives them away', async () => {
    const ids: number[] = [];
    await using rig = await linked(await temporaryFolder());
    const connection = rig.connect();
    await makePreKeys(rig.vault, connection, 5);
    for (let receipt = 0; receipt < 3; receipt += 1) {
      // Baileys sends the receipt here, inside its transaction, before anything of it is committed.
      await connection.keys.transaction(async () => {
        const { creds } = rig.vault.auth;
        const next = creds.firstUnuploadedPreKeyId;
        const made = await makePreKeys(rig.vault, connection, 1);
        ids.push(...Object.keys(made).map(Number));
        expect(await storedIds(rig.rows)).toContain(next);
      }, 'me');
    }
    expect(ids).toEqual([6, 7, 8]);
  });

  it('given away as the process died stay readable and are given to nobody else', async () => {
    const folder = await temporaryFolder();
    const given: number[] = [];
    {
      await using rig = await linked(folder);
      const connection = rig.connect();
      await makePreKeys(rig.vault, connection, 5);
      // Handed out, and nothing committed any more.
      await connection.keys
        .transaction(async () => {
          given.push(...Object.keys(await makePreKeys(rig.vault, connection, 1)).map(Number));
          throw new Error('the process dies here');
        }, 'me')
        .catch(() => {});
    }
    await using rig = await openRig(folder);
    expect(await storedIds(rig.rows)).toEqual(expect.arrayContaining([1, 2, 3, 4, 5, ...given]));
    const next = Object.keys(await makePreKeys(rig.vault, rig.connect(), 3)).map(Number);
    expect(next.filter((id) => [1, 2, 3, 4, 5, ...given].includes(id))).toEqual([]);
  });

  it('are not counted again after going back to older credentials', async () => {
    const folder = await temporaryFolder();
    {
      await using rig = await linked(folder);
      await rig.vault.confirm();
      await makePreKeys(rig.vault, rig.connect(), 30);
    }
    {
      await using rig = await openRig(folder);
      for (const { key } of await rig.rows.list('creds/', { newestFirst: true, limit: 2 })) {
        await rig.rows.set(key, 'damaged');
      }
    }
    await using rig = await openRig(folder);
    expect(rig.vault.health().recoveredFrom).toBeDefined();
    const before = await storedIds(rig.rows);
    const made = Object.keys(await makePreKeys(rig.vault, rig.connect(), 5)).map(Number);
    const spare = before.at(-1);
    expect(made.filter((id) => id !== spare && before.includes(id))).toEqual([]);
  });

  it('are counted rightly although the disk was full for a while', async () => {
    const disk = { isFull: false };
    const wrap = (state: KeyValueStore): KeyValueStore => ({
      ...state,
      async setMany(rows) {
        if (disk.isFull) throw new Error('no space left');
        await state.setMany(rows);
      },
    });
    await using rig = await openRig(await temporaryFolder(), { wrap });
    markLinked(rig.vault.auth.creds);
    const connection = rig.connect();
    await makePreKeys(rig.vault, connection, 5);
    disk.isFull = true;
    await expect(makePreKeys(rig.vault, connection, 1)).rejects.toThrow();
    disk.isFull = false;
    const made = await makePreKeys(rig.vault, connection, 2);
    expect(Object.keys(made)).toHaveLength(2);
    const ids = await storedIds(rig.rows);
    expect(
      Object.keys(made)
        .map(Number)
        .filter((id) => !ids.includes(id)),
    ).toEqual([]);
  });
});

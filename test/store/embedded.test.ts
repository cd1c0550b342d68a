import { readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, expect, it } from 'vitest';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { StoreError } from '../../src/kernel/bus/store/store.ts';
import { BusFullError } from '../../src/kernel/message/errors.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { outbound, queued } from '../contract/bus-bench.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const LIMITS = { maxPendingPerChat: 2, maxPending: 10 };
const NO_CURSOR = { cursor: undefined, limits: LIMITS };

describe('the embedded store', () => {
  let folder = '';
  let path = '';
  const clock = createMovableClock();
  const open = () => openEmbeddedStore({ path, clock, log: silentLogger });
  beforeEach(async () => {
    folder = await temporaryFolder();
    path = join(folder, 'state.db');
  });
  describe('committing', () => {
    it('has what was written together on disk when any of it resolves', async () => {
      await using store = await open();
      await using witness = await open();
      const rows = store.scope('s');
      const writes = ['a', 'b', 'c'].map((key) => rows.set(key, `value of ${key}`));
      await Promise.race(writes);
      expect((await witness.scope('s').list('')).map(({ key }) => key)).toEqual(['a', 'b', 'c']);
    });

    it('undoes an operation that fails and none of its neighbours', async () => {
      await using store = await open();
      const results = await Promise.allSettled([
        store.accept([queued('a', '1'), queued('a', '2')], NO_CURSOR),
        store.accept([queued('b', '3'), queued('a', '4')], NO_CURSOR),
        store.queue(outbound('a', 'x')),
        store.accept([queued('b', '5')], NO_CURSOR),
      ]);
      expect(results.map(({ status }) => status)).toEqual([
        'fulfilled',
        'rejected',
        'fulfilled',
        'fulfilled',
      ]);
      expect(results[1]).toMatchObject({ reason: expect.any(BusFullError) });
      expect(await store.stats()).toMatchObject({ pending: 3, outboundQueued: 1 });
      expect(await store.accept([queued('b', '3')], NO_CURSOR)).toEqual(['accepted']);
    });

    it('sees in a read what was written before it in the same moment', async () => {
      await using store = await open();
      const rows = store.scope('s');
      void rows.set('k', 'new');
      expect(await rows.get('k')).toBe('new');
    });

    it('commits what is under way when it closes and refuses what comes after', async () => {
      const store = await open();
      const written = store.scope('s').set('k', 'v');
      await store[Symbol.asyncDispose]();
      await written;
      await expect(store.scope('s').get('k')).rejects.toMatchObject({ code: 'store_closed' });
      await using again = await open();
      expect(await again.scope('s').get('k')).toBe('v');
    });

    it('notices what another process wrote and not what it wrote itself', async () => {
      await using store = await open();
      await using other = await open();
      await store.scope('s').set('k', 'mine');
      expect(store.changedOutside()).toBe(false);
      await other.scope('s').set('k', 'theirs');
      expect(store.changedOutside()).toBe(true);
      expect(store.changedOutside()).toBe(false);
    });
  });

  describe('opening', () => {
    it('makes a file that only its user can read, its side files too', async () => {
      await using store = await open();
      await store.scope('s').set('k', 'v');
      for (const file of [path, `${path}-wal`, `${path}-shm`]) {
        expect((await stat(file)).mode & 0o777).toBe(0o600);
      }
    });

    it('brings an empty file of schema 0 to the newest schema and leaves it there', async () => {
      new DatabaseSync(path).close();
      await using store = await open();
      await store.scope('s').set('k', 'v');
      await using again = await open();
      expect(await again.scope('s').get('k')).toBe('v');
    });

    it('leaves a file of a newer nanobot alone and says so', async () => {
      const newer = new DatabaseSync(path);
      newer.exec('CREATE TABLE future (x); PRAGMA user_version = 999');
      newer.close();
      const error = await open().catch((reason) => reason);
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ code: 'store_newer' });
      expect(error.message).toMatch(/newer nanobot.*999.*NANOBOT_HOME/s);
    });

    it.each([
      ['is no database', () => writeFile(path, 'once upon a time '.repeat(500))],
      ['was cut off', () => damageStore((file) => truncate(file, 5000))],
      [
        'was overwritten in places',
        () =>
          damageStore(async (file) => {
            const bytes = await readFile(file);
            await writeFile(file, bytes.fill(0x55, 100, 4000));
          }),
      ],
    ])('names a file that %s and says what to do', async (_, prepare) => {
      await prepare();
      const error = await open().catch((reason) => reason);
      expect(error).toMatchObject({ name: 'StoreError', code: 'store_damaged' });
      expect(error.message).toContain(`${path} is damaged. Rebuild it`);
    });

    async function damageStore(damage: (file: string) => Promise<void>) {
      const store = await open();
      await store.accept([queued('a', '1')], NO_CURSOR);
      await store[Symbol.asyncDispose]();
      await damage(path);
    }
  });

  describe('key-value rows', () => {
    it('keep scopes apart', async () => {
      await using store = await open();
      await store.scope('one').set('k', '1');
      await store.scope('two').set('k', '2');
      await store.scope('one').delete('k');
      expect(await store.scope('one').get('k')).toBeUndefined();
      expect(await store.scope('two').get('k')).toBe('2');
    });

    it('list a prefix in key order, in pages and newest first', async () => {
      await using store = await open();
      const rows = store.scope('s');
      const keys = ['log:1', 'log:2', 'log:3', 'log;', 'lo', 'log:%', 'log:_'];
      await rows.setMany(keys.map((key) => ({ key, value: key.toUpperCase() })));
      const listed = async (options = {}) =>
        (await rows.list('log:', options)).map(({ key }) => key);
      expect(await listed()).toEqual(['log:%', 'log:1', 'log:2', 'log:3', 'log:_']);
      expect(await listed({ limit: 2 })).toEqual(['log:%', 'log:1']);
      expect(await listed({ limit: 2, after: 'log:1' })).toEqual(['log:2', 'log:3']);
      expect(await listed({ newestFirst: true, limit: 2 })).toEqual(['log:_', 'log:3']);
      expect(await listed({ newestFirst: true, after: 'log:2' })).toEqual(['log:1', 'log:%']);
    });

    it('write several rows as one, deleting those without a value', async () => {
      await using store = await open();
      const rows = store.scope('s');
      await rows.set('old', '1');
      await rows.setMany([
        { key: 'old', value: undefined },
        { key: 'new', value: '2' },
      ]);
      expect(await rows.list('')).toEqual([{ key: 'new', value: '2' }]);
    });

    it('expire by the time of their last writing', async () => {
      await using store = await open();
      const rows = store.scope('s');
      await rows.setMany([
        { key: 'seen:1', value: 'x' },
        { key: 'seen:2', value: 'x' },
        { key: 'other', value: 'x' },
      ]);
      await clock.advance(1000);
      await rows.set('seen:2', 'y');
      expect(await rows.expire('seen:', clock.now())).toBe(1);
      expect((await rows.list('')).map(({ key }) => key)).toEqual(['other', 'seen:2']);
    });
  });
});

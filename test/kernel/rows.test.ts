import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createMessageBus } from '../../src/kernel/bus/message-bus.ts';
import { BusFullError } from '../../src/kernel/message/errors.ts';
import { createRows, RowsOpenError, type RowsSpec } from '../../src/kernel/rows.ts';
import { silentLogger as log } from '../../src/lib/logger.ts';
import { queued } from '../contract/bus-bench.ts';
import { campaign } from '../support/campaign.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { openAt } from '../support/open-store.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { COUNTS, type Count } from './counts.ts';

const CHILD = fileURLToPath(new URL('rows-child.ts', import.meta.url));
const CACHED: RowsSpec<Count> = { ...COUNTS, isCached: true };

const more = (row: Count | undefined): Count => ({ id: 'all', count: (row?.count ?? 0) + 1 });

let server: PostgresServer;
beforeAll(async () => {
  if (hasPostgres) server = await startPostgres();
});
afterAll(() => server?.[Symbol.asyncDispose]());

describe('over SQLite', () => {
  collections(
    async () => join(await temporaryFolder(), 'state.db'),
    campaign({ short: 200, full: 1000 }),
  );
});

describe.skipIf(!hasPostgres)('over PostgreSQL', () => {
  collections(() => server.emptied(), 100);
});

/** @param times changes of each of two processes */
function collections(make: () => Promise<string>, times: number): void {
  async function open(given?: string) {
    const clock = createMovableClock(1000);
    const at = given ?? (await make());
    const store = await openAt(at, clock, log);
    return { path: at, clock, store, rows: createRows(store) };
  }

  it('loses no change where two processes change one row', { timeout: 120_000 }, async () => {
    const { path, store, rows } = await open();
    await using _store = store;
    const children = [1, 2].map(() =>
      spawn(process.execPath, [CHILD, path, String(times)], { stdio: 'inherit' }),
    );
    const ends = await Promise.all(children.map((child) => once(child, 'exit')));
    expect(ends.map(([code]) => code)).toEqual([0, 0]);
    expect(await rows(COUNTS).get('all')).toEqual({ id: 'all', count: 2 * times });
  });

  it('loses no change of those that begin at once', async () => {
    const { store, rows } = await open();
    await using _store = store;
    const counts = rows(COUNTS);
    await Promise.all(Array.from({ length: 50 }, () => counts.change('all', more)));
    expect(await counts.get('all')).toEqual({ id: 'all', count: 50 });
  });

  it('opens once in a process', async () => {
    const { store, rows } = await open();
    await using _store = store;
    rows(COUNTS);
    expect(() => rows(CACHED)).toThrow(RowsOpenError);
    rows({ ...COUNTS, prefix: 'other:' });
  });

  it('says what a change did, and leaves a row that the step leaves', async () => {
    const { store, rows } = await open();
    await using _store = store;
    const counts = rows(COUNTS);
    expect(await counts.change('1', () => undefined)).toBeUndefined();
    expect(await counts.change('1', () => 'remove')).toBeUndefined();
    expect(await counts.change('1', () => ({ id: '1', count: 1 }))).toMatchObject({ count: 1 });
    expect(await counts.change('1', (row) => row)).toBeUndefined();
    expect(await counts.change('1', () => 'remove')).toMatchObject({ count: 1 });
    expect(await counts.get('1')).toBeUndefined();
  });

  it('replaces and removes a damaged row, and lists the others', async () => {
    const { store, rows } = await open();
    await using _store = store;
    const counts = rows(COUNTS);
    const state = store.scope('counts');
    await state.setMany([
      { key: 'count:1', value: '{"id":' },
      { key: 'count:2', value: '[]' },
      { key: 'count:3', value: '{"id":"3","count":3}' },
    ]);
    expect(await counts.list()).toEqual([{ id: '3', count: 3 }]);
    const seen: unknown[] = [];
    await counts.change('1', (row) => {
      seen.push(row);
      return { id: '1', count: 1 };
    });
    await counts.change('2', () => 'remove');
    expect(seen).toEqual([undefined]);
    expect((await state.list('')).map(({ key }) => key)).toEqual(['count:1', 'count:3']);
  });

  it.each([COUNTS, CACHED])('lists by id, all or those that begin so', async (spec) => {
    const { store, rows } = await open();
    await using _store = store;
    const counts = rows(spec);
    for (const id of ['b2', 'a1', 'b1', 'b3']) await counts.change(id, () => ({ id, count: 0 }));
    expect((await counts.list()).map(({ id }) => id)).toEqual(['a1', 'b1', 'b2', 'b3']);
    expect((await counts.entries('a')).map(([id]) => id)).toEqual(['a1']);
  });

  it('in memory finds rows by the keys that they have now, also by one that several have', async () => {
    const { store, rows } = await open();
    await using _store = store;
    const names = ['a', 'b', 'c'];
    const keys = ({ count }: Count) => names.filter((_, bit) => (count >> bit) % 2 === 1);
    const order = (one: Count, other: Count) => one.count - other.count;
    const counts = rows({ ...CACHED, keys, order });
    const live = await counts.live();
    for (let step = 0; step < 24; step += 1) {
      const [id, count] = [String(step % 3), (step * 5) % 8];
      await counts.change(id, () => (count === 0 ? 'remove' : { id, count }));
      const all = await counts.list();
      for (const name of names)
        expect(live.by(name)).toEqual(all.filter((each) => keys(each).includes(name)));
    }
    expect(live.all).toEqual(new Map(await counts.entries()));
  });

  it.each([COUNTS, CACHED])('erases what matches and expires what is old', async (spec) => {
    const { clock, store, rows } = await open();
    await using _store = store;
    const counts = rows(spec);
    for (const id of ['1', '2', '3']) await counts.change(id, () => ({ id, count: Number(id) }));
    expect(await counts.erase(({ count }) => count > 2)).toBe(1);
    await clock.jump(1000);
    await counts.change('2', (row) => row && { ...row, count: 7 });
    await counts.expire(clock.now());
    expect(await counts.list()).toEqual([{ id: '2', count: 7 }]);
  });

  it('writes rows of another collection in the transaction of a change', async () => {
    const { store, rows } = await open();
    await using _store = store;
    const counts = rows(COUNTS);
    const gone = rows({ ...CACHED, prefix: 'gone:' });
    expect(await gone.list()).toEqual([]);
    await counts.change('1', () => ({ id: '1', count: 1 }));
    await counts.change(
      '1',
      () => 'remove',
      (row) => [gone.write(row.id, row)],
    );
    expect([await counts.list(), await gone.list()]).toEqual([[], [{ id: '1', count: 1 }]]);
  });

  it('in memory keeps a row that moves to another collection until it is there', async () => {
    const { store, rows } = await open();
    await using _store = store;
    const counts = rows(CACHED);
    const gone = rows({ ...CACHED, prefix: 'gone:' });
    await Promise.all([counts.list(), gone.list()]);
    await counts.change('1', () => ({ id: '1', count: 1 }));
    const left: unknown[] = [];
    const moved = (row: Count) => {
      const { committed, ...write } = gone.write(row.id, row);
      return {
        ...write,
        async committed() {
          left.push(await counts.get(row.id));
          await committed();
        },
      };
    };
    await counts.change(
      '1',
      () => 'remove',
      (row) => [moved(row)],
    );
    expect(left).toEqual([{ id: '1', count: 1 }]);
    expect([await counts.list(), await gone.list()]).toEqual([[], [{ id: '1', count: 1 }]]);
  });

  it('writes rows in the transaction that accepts a message, and none for a duplicate', async () => {
    const { clock, store, rows } = await open();
    await using _store = store;
    const counts = rows(CACHED);
    const limits = { maxPending: 2, maxPendingPerChat: 2 };
    await using bus = createMessageBus({ store, clock, log, limits });
    const accept = (id: string, count: number) =>
      bus.accept([queued('a', id)], { rows: [counts.write('1', { id: '1', count })] });
    expect(await counts.list()).toEqual([]);
    await accept('1', 1);
    expect(await counts.list()).toEqual([{ id: '1', count: 1 }]);
    expect(await accept('1', 7)).toEqual(['duplicate']);
    await accept('2', 2);
    await expect(accept('3', 7)).rejects.toThrow(BusFullError);
    expect(await counts.list()).toEqual([{ id: '1', count: 2 }]);
    expect(await store.scope('counts').get('count:1')).toBe('{"id":"1","count":2}');
  });

  it('in memory sees what another process wrote, and its own changes at once', async () => {
    const one = await open();
    const other = await open(one.path);
    await using _one = one.store;
    await using _other = other.store;
    const mine = one.rows(CACHED);
    const theirs = other.rows(CACHED);
    await mine.change('all', more);
    expect(await mine.get('all')).toMatchObject({ count: 1 });
    for (let count = 2; count < 10; count += 2) {
      await theirs.change('all', more);
      await expect.poll(() => mine.get('all'), { timeout: 30_000 }).toMatchObject({ count });
      await mine.change('all', more);
      expect(await mine.get('all')).toMatchObject({ count: count + 1 });
    }
  });
}

// Commits whose sync runs beside the event loop, on a disk that is held or fails.

import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { leaveSyncsToCaller, openDatabase } from '../../src/kernel/bus/store/database.ts';
import { GroupCommit, WriteAheadLog } from '../../src/kernel/bus/store/group-commit.ts';
import type { Sql } from '../../src/kernel/bus/store/key-value.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMovableClock } from '../support/movable-clock.ts';

function insert(value: string) {
  return (sql: Sql) => sql.change('INSERT INTO t (v) VALUES (?)', value);
}

function remove(value: string) {
  return (sql: Sql) => sql.change('DELETE FROM t WHERE v = ?', value);
}

function values(sql: Sql): readonly string[] {
  const rows = sql.all<{ v: string }>('SELECT v FROM t ORDER BY v');
  return rows.map(({ v }) => v);
}

/** The real log of a real file; its disk can be held and can fail. */
class HeldLog extends WriteAheadLog {
  syncs = 0;
  #gate = Promise.withResolvers<void>();

  constructor(path: string) {
    super(path);
    this.#gate.resolve();
  }

  override async sync(): Promise<void> {
    this.syncs += 1;
    await this.#gate.promise;
    await super.sync();
  }

  hold(): { release(): void; fail(error: Error): void } {
    const gate = Promise.withResolvers<void>();
    this.#gate = gate;
    return { release: () => gate.resolve(), fail: (error) => gate.reject(error) };
  }
}

type Rig = AsyncDisposable & {
  readonly path: string;
  readonly wal: HeldLog;
  readonly commits: GroupCommit;
  readonly database: DatabaseSync;
  readonly clock: ReturnType<typeof createMovableClock>;
};

async function openRig(): Promise<Rig> {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-commit-'));
  const path = join(folder, 'state.db');
  const database = openDatabase(path);
  database.exec('CREATE TABLE t (v TEXT UNIQUE)');
  leaveSyncsToCaller(database);
  const wal = new HeldLog(path);
  const clock = createMovableClock();
  const commits = new GroupCommit(database, path, { wal, clock, log: silentLogger });
  return {
    ...{ path, wal, commits, database, clock },
    async [Symbol.asyncDispose]() {
      await commits.close();
      await rm(folder, { recursive: true });
    },
  };
}

/** What has settled so far, in order. */
function watch() {
  const settled: string[] = [];
  const note = (name: string) => () => void settled.push(name);
  return {
    settled,
    add: (name: string, promise: Promise<unknown>) =>
      promise.then(note(name), note(`${name} failed`)),
  };
}

describe('a commit while the disk is held', () => {
  it('is not reported, and nobody is answered from it', async () => {
    await using rig = await openRig();
    const { commits, wal, clock } = rig;
    await commits.write(insert('known'));
    const held = wal.hold();
    const { settled, add } = watch();
    const all = [add('write', commits.write(insert('new')))];
    await expect.poll(() => wal.syncs).toBe(2);
    all.push(add('read', commits.read(values)));
    all.push(add('refused', commits.write(insert('new'))));
    for (let turn = 0; turn < 5; turn += 1) await nextTurn();
    await clock.advance(7000);
    expect(settled).toEqual([]);
    expect(commits.waitMs()).toBe(7000);
    expect(await commits.glance(values)).toEqual(['known', 'new']);
    held.release();
    await Promise.all(all);
    expect(settled).toEqual(['write', 'read', 'refused failed']);
    expect(commits.waitMs()).toBe(0);
  });

  it('is known to a claim at once, which is stored with it', async () => {
    await using rig = await openRig();
    const { commits, wal } = rig;
    const held = wal.hold();
    const { settled, add } = watch();
    const write = add('write', commits.write(insert('new')));
    const issued = commits.glance(values);
    await add(
      'claim',
      commits.write(values, () => undefined),
    );
    expect(await issued).toEqual([]);
    const stored = add('stored', commits.stored());
    for (let turn = 0; turn < 5; turn += 1) await nextTurn();
    expect(settled).toEqual(['claim']);
    held.release();
    await Promise.all([write, stored]);
    expect(settled.toSorted()).toEqual(['claim', 'stored', 'write']);
    const again = commits.write(insert('newer'));
    const failing = wal.hold();
    await commits.write(values, () => undefined);
    failing.fail(Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' }));
    await expect(commits.stored()).rejects.toMatchObject({ code: 'store_failed' });
    await expect(again).rejects.toMatchObject({ code: 'store_failed' });
    expect(wal.syncs).toBe(2);
  });

  it('is followed by one commit of all that was issued meanwhile', async () => {
    await using rig = await openRig();
    const { commits, wal } = rig;
    const held = wal.hold();
    const first = commits.write(insert('0'));
    await expect.poll(() => wal.syncs).toBe(1);
    const rest = [];
    for (let n = 1; n < 10; n += 1) {
      rest.push(commits.write(insert(String(n))));
      await nextTurn();
    }
    expect(wal.syncs).toBe(1);
    held.release();
    await Promise.all([first, ...rest]);
    expect(wal.syncs).toBe(2);
  });

  it('does not hold up what was read in front of it', async () => {
    await using rig = await openRig();
    const { commits, wal } = rig;
    await commits.write(insert('known'));
    const held = wal.hold();
    const first = commits.write(insert('a'));
    await expect.poll(() => wal.syncs).toBe(2);
    const read = commits.read(values);
    const second = commits.write(insert('b'));
    const secondHeld = wal.hold();
    held.release();
    await first;
    expect(await read).toEqual(['a', 'known']);
    secondHeld.release();
    await second;
  });

  it('is waited for by closing, which leaves no log behind', async () => {
    await using rig = await openRig();
    const { commits, wal, path } = rig;
    const held = wal.hold();
    const { settled, add } = watch();
    const write = add('write', commits.write(insert('a')));
    await expect.poll(() => wal.syncs).toBe(1);
    const closed = add('closed', commits.close());
    await expect(commits.write(insert('b'))).rejects.toMatchObject({ code: 'store_closed' });
    expect(settled).toEqual([]);
    held.release();
    await Promise.all([write, closed]);
    expect(settled).toEqual(['write', 'closed']);
    await expect(stat(`${path}-wal`)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

it('an operation that changes nothing costs no sync', async () => {
  await using rig = await openRig();
  const { commits, wal } = rig;
  await commits.write(insert('a'));
  const before = wal.syncs;
  expect(await commits.write(remove('b'))).toBe(0);
  expect(wal.syncs).toBe(before);
});

it('a sync that fails ends the store: it is not tried again, and nothing is reported after it', async () => {
  await using rig = await openRig();
  const { commits, wal, path } = rig;
  await commits.write(insert('kept'));
  const held = wal.hold();
  const failed = commits.write(insert('lost'));
  await expect.poll(() => wal.syncs).toBe(2);
  const behind = commits.write(insert('behind'));
  const renewal = commits.renew();
  held.fail(Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' }));
  const lost = { code: 'store_failed', message: expect.stringContaining('(EIO)') };
  await expect(failed).rejects.toMatchObject(lost);
  await expect(behind).rejects.toMatchObject(lost);
  await expect(renewal).rejects.toMatchObject(lost);
  await expect(commits.lost).rejects.toMatchObject(lost);
  await expect(commits.read(values)).rejects.toMatchObject(lost);
  await expect(commits.write(insert('later'))).rejects.toMatchObject(lost);
  expect(wal.syncs).toBe(2);
  await commits.close();
  // The log is left as it is, for the next process to check.
  expect((await stat(`${path}-wal`)).size).toBeGreaterThan(0);
});

describe('renewing the log', () => {
  it('loses nothing of what is written meanwhile, and leaves a short log', async () => {
    await using rig = await openRig();
    const { commits, path, database } = rig;
    const written: string[] = [];
    const write = async (value: string) => {
      await commits.write(insert(value));
      written.push(value);
    };
    for (let n = 0; n < 200; n += 1) await write(`before ${n} ${'x'.repeat(3000)}`);
    const before = (await stat(`${path}-wal`)).size;
    let isOver = false;
    const renewal = commits.renew().then(() => {
      isOver = true;
    });
    for (let n = 0; !isOver; n += 1) await write(`meanwhile ${n}`);
    await renewal;
    await write('after');
    expect(await commits.read(values)).toEqual(written.toSorted());
    expect((await stat(`${path}-wal`)).size).toBeLessThan(before / 2);
    expect(database.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
  });

  it('happens by itself once the log is long, and writes in the place of the old one', async () => {
    await using rig = await openRig();
    const { commits, path, database } = rig;
    const large = 'x'.repeat(6_000_000);
    const size = async () => (await stat(`${path}-wal`)).size;
    const pages = () => database.prepare('PRAGMA wal_checkpoint(NOOP)').get()?.['log'];
    for (const n of [1, 2]) await commits.write(insert(`${n} ${large}`));
    expect(pages()).toBeGreaterThan(2900);
    await commits.write(insert(`3 ${large}`));
    await expect.poll(pages).toBeLessThan(10);
    await commits.write(insert('after'));
    expect(await size()).toBe(16 * 1_048_576);
    expect(await commits.read(values)).toHaveLength(4);
    expect(database.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
  });
});

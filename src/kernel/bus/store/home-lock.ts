// One gateway per home, by a lock that the kernel releases when its holder dies, however it dies.
// Never open the lock file by other means in the holding process: closing it would drop the lock
// (fcntl).

import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { writeAtomic } from '../../../lib/files/files.ts';
import { makePrivate, storeErrorOf } from './database.ts';
import { HomeLockedError } from './store.ts';

/** How long a command that only inspects may hold the lock. */
const LOOK_MS = 500;

/** Data of the holder (process id, address): shown to a person, never acted upon. */
export type HomeHolder = Readonly<Record<string, string | number>>;

/** @throws HomeLockedError if another process holds the home. */
export async function holdHome(lockPath: string, info: HomeHolder): Promise<AsyncDisposable> {
  const infoPath = `${lockPath}.json`;
  const lock = takeLock(lockPath);
  if (lock === undefined) {
    const holder = await readHolder(infoPath);
    throw new HomeLockedError(`another gateway is running in this home${describe(holder)}`, holder);
  }
  await writeAtomic(infoPath, `${JSON.stringify(info)}\n`);
  return {
    async [Symbol.asyncDispose]() {
      await rm(infoPath, { force: true });
      lock.close();
    },
  };
}

/** The holder of the home; undefined if there is none. Never called by the holder: see above. */
export async function findHomeHolder(lockPath: string): Promise<HomeHolder | undefined> {
  if (!existsSync(lockPath)) return undefined;
  const lock = new DatabaseSync(lockPath, { timeout: 0, readOnly: true });
  try {
    lock.prepare('SELECT * FROM sqlite_schema').all();
    return undefined;
  } catch (error) {
    return storeErrorOf(error, lockPath).code === 'store_busy'
      ? readHolder(`${lockPath}.json`)
      : undefined;
  } finally {
    lock.close();
  }
}

/** Whether the lock file is no lock: no gateway can start. Never called by the holder: see above. */
export function isLockDamaged(lockPath: string): boolean {
  if (!existsSync(lockPath)) return false;
  const lock = new DatabaseSync(lockPath, { timeout: 0, readOnly: true });
  try {
    lock.prepare('SELECT * FROM sqlite_schema').all();
    return false;
  } catch (error) {
    return storeErrorOf(error, lockPath).code === 'store_damaged';
  } finally {
    lock.close();
  }
}

/** An open exclusive transaction on an empty database serves as the lock. */
function takeLock(path: string): DatabaseSync | undefined {
  makePrivate(path);
  const lock = new DatabaseSync(path, { timeout: LOOK_MS });
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock.close();
    const failure = storeErrorOf(error, path);
    if (failure.code === 'store_busy') return undefined;
    throw failure;
  }
}

function describe(holder: HomeHolder): string {
  const facts = Object.entries(holder).map(([name, value]) => `${name} ${value}`);
  return facts.length === 0 ? '' : ` (${facts.join(', ')})`;
}

async function readHolder(path: string): Promise<HomeHolder> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch {
    return {};
  }
}

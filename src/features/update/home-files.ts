// The files of the home that a migration changes: kept before the new version starts, and put back
// if it has to go.

import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type StoreMark, storeMark } from '../../kernel/bus/store/store-copy.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { syncFolder, writeAtomic } from '../../lib/files/files.ts';
import { dropKept, type UpdateRun, writeRun } from './record.ts';

const NOTHING: StoreMark = { schema: 0, traffic: '' };
/** Reading it also empties the log of the store. */
const markOf = ({ state }: Home) => (existsSync(state) ? storeMark(state) : NOTHING);

/** The store is the last: as long as it is that of the new version, this is not complete. */
const migratedFiles = (home: Home): readonly string[] => [
  ...[home.config, home.lastGoodConfig],
  ...['-wal', '-shm', ''].map((end) => `${home.state}${end}`),
];

/** Complete before it has its name. */
export async function keepFiles(home: Home): Promise<StoreMark> {
  const partial = `${home.beforeUpdate}.new`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial, { mode: 0o700 });
  const mark = markOf(home);
  for (const path of migratedFiles(home).filter(existsSync)) {
    await cp(path, join(partial, basename(path)), { preserveTimestamps: true });
  }
  await dropKept(home);
  await rename(partial, home.beforeUpdate);
  await syncFolder(home.root);
  return mark;
}

/**
 * Makes the home readable for the version of before, which no gateway uses now; can be repeated.
 * False: messages would be lost, so nothing is changed.
 */
export async function homeGoesBack(home: Home, run: UpdateRun): Promise<boolean> {
  const mark = markOf(home);
  if (run.store === undefined || mark.schema === run.store.schema) return true;
  if (run.step !== 'restoring' && mark.traffic !== run.store.traffic) return false;
  await writeRun(home, { ...run, step: 'restoring' }).catch(() => undefined);
  for (const path of migratedFiles(home)) {
    const kept = join(home.beforeUpdate, basename(path));
    if (!existsSync(kept)) await rm(path, { force: true });
    else await writeAtomic(path, await readFile(kept));
  }
  return true;
}

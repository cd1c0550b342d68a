// A home of every kind of data is backed up, proved and restored; what did not
// change is not stored again.

import { cp, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  createBackup,
  openPlace,
  restoreBackup,
  verifyBackup,
} from '../../src/features/backup/index.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';

const ROOT = join(import.meta.dirname, '../..');
const MADE = join(ROOT, 'test/homes/v1/home');
const S3 = { endpoint: '', region: '', accessKeyId: '', secretAccessKey: '' };
const { signal } = new AbortController();

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nanobot-backup-'));
  await cp(MADE, join(folder, 'home'), { recursive: true });
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const homeIn = (name: string) => homeOf({ NANOBOT_HOME: join(folder, name) });
const placeIn = (name: string) => openPlace(join(folder, name), { env: {}, s3: S3, proxy: '' });

const noUnlock = async () => {
  throw new Error('nothing is encrypted here');
};

async function filesOf(root: string): Promise<ReadonlyMap<string, string>> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const contents = await Promise.all(
    files.map(async ({ parentPath, name }) => {
      const path = join(parentPath, name);
      return [path.slice(root.length + 1), (await readFile(path)).toString('base64')] as const;
    }),
  );
  return new Map(contents);
}

/** The store is compared by its counts: its copy is another file with the same rows. */
const COMPARED = /^(sessions\/(?!\.index)|workspace\/|audit|metrics|config\.)/;

test('a back-up of a home starts with all its messages, sessions and rows, and its files are the same', async () => {
  const home = homeIn('home');
  const place = await placeIn('place');
  const created = await createBackup({ home, place, signal });
  expect(created.counts).toMatchObject({ messages: 74, sessions: 7, rows: { people: 11 } });

  const again = await createBackup({ home, place, signal });
  expect(again.bytes).toBeGreaterThan(created.storedBytes);
  expect(again.storedBytes).toBeLessThan(created.storedBytes / 5);

  const command = [process.execPath, join(ROOT, 'src/main.ts')];
  const env = { PATH: process.env['PATH'], HOME: folder };
  const temp = join(folder, 'temp');
  const verified = await verifyBackup({ place, unlock: noUnlock, signal, temp, command, env });
  expect(verified).toMatchObject({
    ok: true,
    id: again.id,
    counts: { messages: 74, sessions: 7 },
  });
  expect(await readdir(temp)).toEqual([]);

  await restoreBackup({ place, unlock: noUnlock, signal, into: homeIn('restored') });
  const isCompared = ([path]: readonly [string, string]) => COMPARED.test(path);
  const original = [...(await filesOf(join(folder, 'home')))].filter(isCompared).sort();
  const restored = [...(await filesOf(join(folder, 'restored')))].filter(isCompared).sort();
  expect(restored.length).toBeGreaterThan(15);
  expect(restored).toEqual(original);

  const stored = await filesOf(join(folder, 'place'));
  for (const path of stored.keys()) {
    expect((await stat(join(folder, 'place', path))).mode & 0o077).toBe(0);
  }
}, 60_000);

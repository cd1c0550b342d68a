// A home of every kind of data is backed up by the package, proved by a start and restored; what did not change is not
// stored again. What is missing from a back-up is named.

import { cp, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { openPlace } from '../../src/features/backup/places.ts';
import { openHead, openReader, openWriter } from '../../src/features/backup/repository.ts';
import { findSnapshot } from '../../src/features/backup/restore.ts';
import { runNanobot } from '../cli/run-nanobot.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const MADE = join(import.meta.dirname, '../homes/v1/home');
const S3 = { endpoint: '', region: '', accessKeyId: '', secretAccessKey: '' };

let folder: string;

beforeEach(async () => {
  folder = await temporaryFolder();
  await cp(MADE, join(folder, 'home'), { recursive: true });
});
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
  const [home, to] = [join(folder, 'home'), join(folder, 'place')];
  const backup = (...args: readonly string[]) => runNanobot(['backup', ...args], { home });
  const create = async () => {
    expect(await backup('create', '--to', to)).toMatchObject({ code: 0, stderr: '' });
    const stored = await filesOf(to);
    for (const path of stored.keys()) expect((await stat(join(to, path))).mode & 0o077).toBe(0);
    return [...stored.values()].reduce((sum, { length }) => sum + length, 0);
  };
  const first = await create();
  expect(await create()).toBeLessThan(first * 1.2);

  const verified = await backup('verify', '--from', to);
  expect(verified.stdout).toMatch(/ is good: .*Messages: 74, sessions: 7, rows: \d\d+; none is/);
  expect((await readdir(folder)).sort()).toEqual(['home', 'place']);

  const into = join(folder, 'restored');
  await backup('restore', '--from', to, '--into', into);
  const isCompared = ([path]: readonly [string, string]) => COMPARED.test(path);
  const original = [...(await filesOf(home))].filter(isCompared).sort();
  const restored = [...(await filesOf(into))].filter(isCompared).sort();
  expect(restored.length).toBeGreaterThan(15);
  expect(restored).toEqual(original);

  await claimMore(to);
  const refused = await backup('verify', 'made-up', '--from', to);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/^messages: 75 in the back-up, 74 after the start$/m);
  expect(refused.stderr).toMatch(/^rows of "people": 12 in the back-up, 11 after the start$/m);
  expect(refused.stderr).toContain('Back-up made-up did not stand the test.');
});

/** Publishes the newest back-up again, with one message and one person more in its counts. */
async function claimMore(to: string): Promise<void> {
  const place = await openPlace(to, { env: {}, s3: S3, proxy: '' });
  const whole = await findSnapshot(place, undefined);
  const reader = await openReader(place, () => Promise.reject(new Error('nothing is encrypted')));
  const parts = await Promise.all(whole.list.map((name) => reader.chunk(name)));
  const [head = '', ...entries] = Buffer.concat(parts).toString().split('\n');
  const { counts, ...facts } = JSON.parse(head);
  const rows = { ...counts.rows, people: counts.rows.people + 1 };
  const more = { ...facts, counts: { ...counts, messages: counts.messages + 1, rows } };
  const writer = await openWriter(place, await openHead(place, undefined), '');
  const name = await writer.put(Buffer.from([JSON.stringify(more), ...entries].join('\n')));
  const { format: _format, chunks, ...published } = whole;
  await writer.publish({ ...published, id: 'made-up', list: [name] }, [name, ...chunks]);
}

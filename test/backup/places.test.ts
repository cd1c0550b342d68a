// The contract of a repository in each kind of place, plain and encrypted: what is written is read
// again, unchanged content is not stored again, and what is deleted is what nobody needs.

import { createHash, randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import {
  appendFile,
  cp,
  mkdir,
  readdir,
  readFile,
  rm,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createBackup } from '../../src/features/backup/create.ts';
import { openPlace, type Place, readPlace } from '../../src/features/backup/places.ts';
import {
  type Encryption,
  keptIds,
  lockRepository,
  openHead,
  openWriter,
  prune,
  type Snapshot,
  snapshots,
  type Unlock,
} from '../../src/features/backup/repository.ts';
import { findSnapshot, restoreBackup } from '../../src/features/backup/restore.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { readInstance } from '../../src/kernel/instance.ts';
import { campaign } from '../support/campaign.ts';
import { S3_BUCKET, S3_KEY, S3_SECRET, type S3Server, startS3 } from '../support/s3-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const NO_S3 = { endpoint: '', region: '', accessKeyId: '', secretAccessKey: '' };
const { signal } = new AbortController();
const KEEP_ONE = { days: 0, weeks: 0, months: 0 };

let folder: string;
let s3: S3Server;

beforeEach(async () => {
  folder = await temporaryFolder();
  s3 = await startS3();
  await mkdir(join(folder, 'home', 'workspace'), { recursive: true });
  await writeFile(join(folder, 'home', 'config.json'), '{"version":1}');
});
afterEach(() => s3[Symbol.asyncDispose]());

const home = () => homeOf({ NANOBOT_HOME: join(folder, 'home') });
const path = (name: string) => join(folder, 'home', 'workspace', name);
const s3Settings = () => ({
  endpoint: s3.endpoint,
  region: 'eu-test-1',
  accessKeyId: S3_KEY,
  secretAccessKey: S3_SECRET,
});
const options = () => ({ env: {}, s3: s3Settings(), proxy: '' });

async function contentOf(root: string): Promise<ReadonlyMap<string, string>> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(root.length + 1))
    .filter((name) => !/^(backups\/|instance|nanobot\.lock)/.test(name))
    .sort();
  return new Map(
    await Promise.all(
      files.map(
        async (name) => [name, (await readFile(join(root, name))).toString('hex')] as const,
      ),
    ),
  );
}

async function expectRestored(place: Place, unlock: Unlock, id?: string): Promise<void> {
  const into = join(folder, `restored-${randomBytes(4).toString('hex')}`);
  await restoreBackup({ place, unlock, signal, id, into: homeOf({ NANOBOT_HOME: into }) });
  expect(await contentOf(into)).toEqual(await contentOf(join(folder, 'home')));
}

const identity = await generateX25519Identity();
const recipients: Encryption = {
  kind: 'recipients',
  recipients: [await identityToRecipient(identity)],
};
const withIdentity: Unlock = async () => ({ kind: 'identity', identity });
const notEncrypted: Unlock = () => Promise.reject(new Error('it is not encrypted'));
/** A passphrase is tried by the package: test/system/package.test.ts. */
const WAYS = [
  ['plain', undefined, notEncrypted],
  ['for a recipient', recipients, withIdentity],
] as const;
/** Each kind of place with one way: a place does not know whether what it holds is encrypted. */
const PLACES = [
  ['a folder, for a recipient', () => join(folder, 'place'), recipients, withIdentity],
  ['a bucket, plain', () => `s3://${S3_BUCKET}/deep/prefix`, undefined, notEncrypted],
] as const;

test.each(PLACES)(
  'in %s: restored as it was, stored once, deleted when nobody needs it',
  async (_, nameOf, encrypt, unlock) => {
    const place = await openPlace(nameOf(), options());
    const big = randomBytes(5_000_000);
    await writeFile(path('big.bin'), big);
    await writeFile(path('note.md'), 'first words');
    const first = await createBackup({ home: home(), place, encrypt, signal });
    await expectRestored(place, unlock);

    await appendFile(path('big.bin'), 'and some more');
    await writeFile(path('note.md'), 'other words');
    const second = await createBackup({ home: home(), place, encrypt, signal });
    expect(first.storedBytes).toBeGreaterThan(5_000_000);
    expect(second.storedBytes).toBeLessThan(1_500_000);
    await expectRestored(place, unlock, second.id);

    await truncate(path('big.bin'), 1000);
    await createBackup({ home: home(), place, encrypt, signal });
    const { id = '' } = (await readInstance(home())) ?? {};
    const pruned = await prune(place, id, KEEP_ONE, signal);
    expect(pruned).toMatchObject({ snapshots: 2 });
    expect(pruned?.chunks).toBeGreaterThan(2);
    expect(await snapshots(place)).toHaveLength(1);
    await expectRestored(place, unlock);
    expect(await prune(place, id, KEEP_ONE, signal)).toEqual({ snapshots: 0, chunks: 0 });
  },
);

test.each(WAYS)(
  'as one file, %s; a file that was cut is refused',
  async (_way, encrypt, unlock) => {
    await writeFile(path('note.md'), randomBytes(3_000_000));
    const file = join(folder, 'home.tar');
    const stream = createWriteStream(file);
    await using writing = await openPlace('-', { ...options(), stream });
    await createBackup({ home: home(), place: writing, encrypt, signal });
    await new Promise((done) => stream.end(done));
    {
      await using place = await readPlace(file, options());
      await expectRestored(place, unlock);
    }
    await truncate(file, 2_000_000);
    await expect(readPlace(file, options())).rejects.toThrow('incomplete');
  },
);

test('a bucket that is busy is asked again; wrong keys and a missing bucket are said at once', async () => {
  const place = await openPlace(`s3://${S3_BUCKET}`, options());
  s3.failNext(2);
  await createBackup({ home: home(), place, signal });
  expect(s3.statuses).toContain(503);
  const wrong = { ...s3Settings(), secretAccessKey: 'another' };
  const refused = await openPlace(`s3://${S3_BUCKET}`, { ...options(), s3: wrong });
  await expect(createBackup({ home: home(), place: refused, signal })).rejects.toThrow(
    'SignatureDoesNotMatch',
  );
  const nowhere = await openPlace('s3://nowhere', options());
  await expect(createBackup({ home: home(), place: nowhere, signal })).rejects.toThrow(
    /NoSuchBucket|no bucket/,
  );
  await expect(openPlace(`s3://${S3_BUCKET}`, { ...options(), s3: NO_S3 })).rejects.toThrow(
    'AWS_ACCESS_KEY_ID',
  );
});

test.each(['/proc/x', '/proc/x/home.tar'])(
  'in %s, where no folder can be created, is refused in words',
  async (to) => {
    const written = openPlace(to, options()).then((place) => place.write('a', Buffer.of(1)));
    await expect(written).rejects.toThrow(`${to} cannot be written: EROFS`);
    await expect(written).rejects.toThrow('Name another place.');
  },
);

test('files that are written at once into new folders of a place are all there', async () => {
  const places = Array.from({ length: 100 }, (_, at) => join(folder, `place-${at}`));
  for (const to of places) {
    const place = await openPlace(to, options());
    const write = async (at: number) => {
      for (let turns = 0; turns < at; turns += 1) await nextTurn();
      await place.write(`chunks/${at}/file`, Buffer.of(1));
    };
    await Promise.all([0, 1, 2, 3].map(write));
    expect(await Array.fromAsync(place.list('chunks'))).toHaveLength(4);
  }
});

test('a wrong identity and a changed chunk are refused, and nothing is left in the home', async () => {
  const place = await openPlace(join(folder, 'place'), options());
  await createBackup({ home: home(), place, encrypt: recipients, signal });
  const into = homeOf({ NANOBOT_HOME: join(folder, 'into') });
  const other = await generateX25519Identity();
  const wrong: Unlock = async () => ({ kind: 'identity', identity: other });
  await expect(restoreBackup({ place, unlock: wrong, signal, into })).rejects.toThrow('identity');
  const [chunk = ''] = (await findSnapshot(place, undefined)).chunks;
  const file = join(folder, 'place', 'chunks', chunk.slice(0, 2), chunk);
  const content = await readFile(file);
  content[content.length - 1] = (content.at(-1) ?? 0) ^ 1;
  await writeFile(file, content);
  const unlock = withIdentity;
  await expect(restoreBackup({ place, unlock, signal, into })).rejects.toThrow('damaged');
  expect(await readInstance(into)).toBeUndefined();
});

test('a list of files that somebody made up writes nothing outside the home', async () => {
  const outside = join(folder, 'outside');
  await mkdir(outside);
  const link = { kind: 'link', path: 'workspace/out', to: outside };
  const evil = { kind: 'file', path: 'workspace/out/evil', mode: 0o600, size: 4, modified: 0 };
  const above = { ...evil, path: 'workspace/../../outside/evil' };
  for (const made of [[link, evil], [evil, link], [above]]) {
    const place = await openPlace(join(folder, randomBytes(4).toString('hex')), options());
    const writer = await openWriter(place, await openHead(place, undefined), '');
    const parts = [[await writer.put(Buffer.from('evil')), 0, 4]];
    const hash = createHash('sha256').update('evil').digest('hex');
    const counts = { messages: 0, sessions: 0, rows: {} };
    const list = [
      { counts, epoch: 1, host: 'other', root: '/other' },
      ...made.map((entry) => ({ ...entry, parts, hash, stamp: '' })),
    ].map((line) => JSON.stringify(line));
    const name = await writer.put(Buffer.from(list.join('\n')));
    const facts = { id: 'made-up', at: new Date().toISOString(), home: 'h', program: '1' };
    await writer.publish({ ...facts, files: 1, bytes: 4, list: [name] }, [name]);
    const into = homeOf({ NANOBOT_HOME: join(folder, 'into') });
    const unlock: Unlock = () => Promise.reject(new Error('plain'));
    await expect(restoreBackup({ place, unlock, signal, into })).rejects.toThrow();
    expect(await readdir(outside)).toEqual([]);
    expect(await readInstance(into)).toBeUndefined();
    await rm(into.root, { recursive: true });
  }
});

test.each([
  ['files', ['media/ab/content']],
  ['s3', []],
])('media kept as %s leave %j in the back-up', async (kind, kept) => {
  const storage = { media: { kind, bucket: 'files' } };
  await writeFile(home().config, JSON.stringify({ version: 1, storage }));
  await mkdir(join(home().media, 'ab'), { recursive: true });
  await writeFile(join(home().media, 'ab', 'content'), 'of a message');
  const place = await openPlace(join(folder, 'place'), options());
  await createBackup({ home: home(), place, signal });
  const into = join(folder, 'restored');
  await restoreBackup({
    place,
    unlock: notEncrypted,
    signal,
    into: homeOf({ NANOBOT_HOME: into }),
  });
  expect([...(await contentOf(into)).keys()].filter((name) => /^media/.test(name))).toEqual(kept);
});

test('nothing is deleted while another back-up is written, and none begins while something is', async () => {
  const place = await openPlace(join(folder, 'place'), options());
  await createBackup({ home: home(), place, signal });
  const { id = '' } = (await readInstance(home())) ?? {};
  {
    await using _writing = await lockRepository(place, 'create', signal);
    expect(await prune(place, id, KEEP_ONE, signal)).toBeUndefined();
  }
  // That of a process which is gone holds nobody up.
  const lock = JSON.stringify({
    kind: 'prune',
    host: (await import('node:os')).hostname(),
    pid: 2 ** 22 + 7,
  });
  await mkdir(join(folder, 'place', 'locks'), { recursive: true });
  await writeFile(join(folder, 'place', 'locks', 'gone.json'), lock);
  await createBackup({ home: home(), place, signal });
  expect(await readdir(join(folder, 'place', 'locks'))).toEqual([]);
});

test('7d4w6m keeps the newest of each of the last days, weeks and months', () => {
  const at = (text: string): Snapshot => ({
    ...{ format: 1, id: text.replace(/\W/g, ''), at: text, home: 'h', program: '' },
    ...{ files: 0, bytes: 0, list: [], chunks: [] },
  });
  const days = Array.from({ length: 200 }, (_, day) =>
    at(new Date(Date.UTC(2026, 6, 1, 12) - day * 86_400_000).toISOString()),
  );
  const kept = keptIds(days, { days: 7, weeks: 4, months: 6 });
  const dates = [...kept]
    .map((id) => `${id.slice(0, 4)}-${id.slice(4, 6)}-${id.slice(6, 8)}`)
    .sort();
  expect(dates).toEqual([
    ...['2026-02-28', '2026-03-31', '2026-04-30', '2026-05-31', '2026-06-14', '2026-06-21'],
    ...[
      '2026-06-25',
      '2026-06-26',
      '2026-06-27',
      '2026-06-28',
      '2026-06-29',
      '2026-06-30',
      '2026-07-01',
    ],
  ]);
});

type Step = {
  readonly name: string;
  readonly kind: 'write' | 'append' | 'delete';
  readonly size: number;
};

test('whatever changes between two back-ups, each one is restored as the home was', async () => {
  const step = fc.record({
    name: fc.constantFrom('a', 'b', 'c/d', 'c/e'),
    kind: fc.constantFrom('write', 'append', 'delete'),
    size: fc.constantFrom(0, 1, 70_000, 2_097_152, 2_200_000),
  });
  const rounds = fc.array(fc.array(step, { maxLength: 4 }), { minLength: 2, maxLength: 4 });
  const unlock: Unlock = () => Promise.reject(new Error('plain'));
  await fc.assert(
    fc.asyncProperty(rounds, async (all: readonly (readonly Step[])[]) => {
      await rm(join(folder, 'place'), { recursive: true, force: true });
      await rm(join(folder, 'home', 'workspace'), { recursive: true, force: true });
      const place = await openPlace(join(folder, 'place'), options());
      const seen: (readonly [string, string])[] = [];
      for (const [round, steps] of all.entries()) {
        for (const each of steps) {
          const file = path(each.name);
          await mkdir(dirname(file), { recursive: true });
          const content = Buffer.alloc(each.size, round + each.name.length);
          if (each.kind === 'write') await writeFile(file, content);
          else if (each.kind === 'append') await appendFile(file, content);
          else await rm(file, { force: true });
        }
        const { id } = await createBackup({ home: home(), place, signal });
        const copy = join(folder, `copy-${id}`);
        await cp(join(folder, 'home'), copy, { recursive: true });
        seen.push([id, copy]);
      }
      for (const [id, copy] of seen) {
        const into = join(folder, `again-${id}`);
        await restoreBackup({ place, unlock, signal, id, into: homeOf({ NANOBOT_HOME: into }) });
        expect(await contentOf(into)).toEqual(await contentOf(copy));
        for (const gone of [into, copy]) await rm(gone, { recursive: true });
      }
    }),
    { numRuns: campaign({ short: 5, full: 100 }) },
  );
});

// Case X08: 200 hostile paths against every tool that takes one, links of all kinds, special files,
// giants, and a link that changes places while the tools work.

import { execFile } from 'node:child_process';
import {
  link,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createGuardedFiles } from '../../src/lib/files/guarded-files.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { createWorkspace, SECRET } from '../tools/workspace-fixture.ts';

const SWAPS = 2000;
const MARK = 'written by a tool';

const UPWARDS = [
  '..',
  '../',
  '../..',
  '../../../../../../..',
  'notes/../..',
  'notes/../../',
  './../',
  'a/b/../../..',
  'notes/./.././..',
  '..//',
];
const TARGETS = ['', '/config.json', '/etc/passwd', '/state.db', '/.ssh/id_ed25519'];
/** The whole file system by another name. */
const PROCESS_ROOT = '/proc/self/root';
const ABSOLUTE = [
  '/',
  '/etc/passwd',
  '/etc/shadow',
  '/proc/self/environ',
  `${PROCESS_ROOT}/etc/passwd`,
  '/proc/self/cwd/package.json',
  '/proc/1/mem',
  '/dev/zero',
  '/dev/stdin',
  '/dev/tty',
  '/dev/fd/0',
  '/sys/kernel',
  '/home/ann/.ssh/id_rsa',
  '/tmp',
  '/var/run/docker.sock',
  '//etc/passwd',
  '/./etc/passwd',
  '/etc/../etc/passwd',
  '~',
  '~/',
  '~/.ssh/id_rsa',
  '~/.nanobot/config.json',
];
const SECRETS = [
  '.env',
  '.env.local',
  '.env.production',
  'app/.env',
  '.ENV',
  '.Env',
  '.ssh/id_rsa',
  '.ssh/config',
  '.SSH/authorized_keys',
  '.ssh',
  'a/.ssh/x',
  '.git/hooks/pre-commit',
  '.git/hooks',
  '.GIT/HOOKS/post-checkout',
  '.git/config',
  'sub/.git/hooks/x',
  '.git/modules/x/hooks/y',
  'notes/../.env',
  './/.env',
  '.env/',
  'server.pem',
  'server.PEM',
  'tls/private.key',
  'id_rsa',
  'backup/id_ed25519',
  '.netrc',
  '.npmrc',
  '.aws/credentials',
  '.kube/config',
  '.docker/config.json',
  '.gnupg/x',
  '.nanobot/config.json',
  '.git-credentials',
  'cert.p12',
  'Cert.P12',
  'a/b/c/.env.test',
  '.AWS/credentials',
  'ID_RSA',
  'x.pfx',
  'vault.kdbx',
  '.pgpass',
  '.pypirc',
];
const LOOK_ALIKES = [
  '.ｅｎｖ',
  '．env',
  '.en\u200dv',
  '.e\u00adnv',
  '\ufeff.env',
  '.ſſh/id_rsa',
  '.env.',
  '.env ',
  '.ssh./x',
  '.ssh /x',
  'id_rsa\u200b',
  'K.pem\u2060',
];
const MALFORMED = [
  'a\0b',
  '\0',
  'notes\0/../../config.json',
  'a\nb',
  'a\rb',
  'a\tb',
  'a\u0007',
  '\u202Egnp.exe',
  'a\u2066b',
  'a\ud800b',
  '..\\..\\config.json',
  'C:\\Windows\\win.ini',
  '\\\\server\\share',
  'notes\\..\\..\\x',
  `${'a/'.repeat(3000)}x`,
  'x'.repeat(5000),
  `${'x'.repeat(256)}`,
  `${'ü'.repeat(200)}`,
  '\u001b[2J',
];
const HOSTILE = [
  ...UPWARDS.flatMap((up) => TARGETS.map((target) => `${up}${target}`)),
  ...ABSOLUTE,
  ...ABSOLUTE.filter((path) => path.startsWith('/')).map((path) => `notes/../..${path}`),
  ...SECRETS,
  ...SECRETS.map((path) => `./notes/../${path}`),
  ...LOOK_ALIKES,
  ...MALFORMED,
];

const argumentsFor = (path: string) => ({
  read_file: { path },
  read_document: { document: path },
  write_file: { path, content: MARK },
  edit_file: { path, old_text: SECRET, new_text: MARK },
  list_dir: { path },
});

async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true });
  return entries.toSorted();
}

describe('file tools and paths', () => {
  test(`refuse ${HOSTILE.length} hostile paths, touching and telling nothing`, async () => {
    expect(HOSTILE.length).toBeGreaterThanOrEqual(200);
    const { home, call } = await createWorkspace();
    const before = await filesBelow(home);
    for (const path of HOSTILE) {
      for (const [tool, input] of Object.entries(argumentsFor(path))) {
        const outcome = await call(tool, input);
        expect(outcome.status, `${tool} ${JSON.stringify(path)}`).toBe('failed');
        expect(outcome.text).not.toContain(SECRET);
      }
    }
    expect(await filesBelow(home)).toEqual(before);
    expect(await readFile(join(home, 'config.json'), 'utf8')).toBe(SECRET);
  });

  test.each([
    'hello.txt',
    './hello.txt',
    'notes/../hello.txt',
    'notes//..//hello.txt',
    ' hello.txt ',
  ])('take the harmless path %j', async (path) => {
    const { call } = await createWorkspace();
    expect(await call('read_file', { path })).toMatchObject({ status: 'ok' });
  });

  test('take absolute paths inside the workspace only, not those that begin alike', async () => {
    const { call, workspace } = await createWorkspace();
    expect((await call('read_file', { path: join(workspace, 'hello.txt') })).status).toBe('ok');
    await mkdir(`${workspace}-2`);
    await writeFile(`${workspace}-2/hello.txt`, SECRET);
    expect((await call('read_file', { path: `${workspace}-2/hello.txt` })).status).toBe('failed');
  });

  test('names that only look special are usable', async () => {
    const { call } = await createWorkspace();
    for (const path of [
      '...',
      '..a',
      'a..',
      '%2e%2e%2fx',
      'é.md',
      '日本語/メモ.md',
      '👩‍💻.md',
      'a b.txt',
      'environment.env.md',
      '-rf',
      '$HOME',
      '*',
    ]) {
      expect((await call('write_file', { path, content: path })).status, path).toBe('ok');
      expect(await call('read_file', { path })).toMatchObject({ status: 'ok', text: path });
    }
  });
});

describe('file tools and links', () => {
  test.each([
    ['a link to a file outside', '../config.json', 'bait'],
    ['a link to a folder outside', '..', 'bait/config.json'],
    ['a link to a file inside', 'hello.txt', 'bait'],
    ['a link to itself', 'bait', 'bait'],
    ['a link to the root', '/', 'bait/etc/passwd'],
    ['a dangling link', '../new-file', 'bait'],
  ])('%s is followed by no tool', async (_, target, path) => {
    const { home, workspace, call } = await createWorkspace();
    await symlink(target, join(workspace, 'bait'));
    for (const [tool, input] of Object.entries(argumentsFor(path))) {
      const outcome = await call(tool, input);
      expect(outcome.status, tool).toBe('failed');
      expect(outcome.text).not.toContain(SECRET);
    }
    expect(await readFile(join(home, 'config.json'), 'utf8')).toBe(SECRET);
    expect(await readdir(home)).not.toContain('new-file');
    expect((await call('list_dir', {})).text).toContain('link    bait  (not followed)');
  });

  test('a hard link to a file outside is not written through', async () => {
    const { home, workspace, call } = await createWorkspace();
    await link(join(home, 'config.json'), join(workspace, 'bait'));
    expect((await call('write_file', { path: 'bait', content: MARK })).text).toContain(
      'Permission denied',
    );
    const edit = { path: 'bait', old_text: SECRET, new_text: MARK };
    expect((await call('edit_file', edit)).status).toBe('failed');
    expect(await readFile(join(home, 'config.json'), 'utf8')).toBe(SECRET);
  });

  test(`a folder that becomes a link and back while the tools work lets nothing out in ${SWAPS} tries`, async () => {
    const { home, workspace, call } = await createWorkspace();
    const door = join(workspace, 'door');
    const parked = join(workspace, 'parked');
    const outside = join(home, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, 'config.json'), SECRET);
    await writeFile(join(outside, 'treasure'), SECRET);
    const ignore = () => undefined;
    await mkdir(door);
    await writeFile(join(door, 'config.json'), 'inside');
    let isSwapping = true;
    const swapping = (async () => {
      while (isSwapping) {
        // A writer may create the folder in between, so any step may find it taken.
        await rename(door, parked).catch(ignore);
        await rm(door, { recursive: true, force: true });
        await symlink(outside, door).catch(ignore);
        await rm(door, { recursive: true, force: true });
        await rename(parked, door).catch(ignore);
      }
    })();
    let successes = 0;
    for (let round = 0; round < SWAPS / 4; round += 1) {
      const outcomes = await Promise.all([
        call('read_file', { path: 'door/config.json' }),
        call('read_file', { path: 'door/config.json' }),
        call('write_file', { path: 'door/config.json', content: 'inside' }),
        call('list_dir', { path: 'door' }),
      ]);
      for (const { status, text } of outcomes) {
        expect(text).not.toContain(SECRET);
        expect(text).not.toContain('treasure');
        if (status === 'ok') successes += 1;
      }
    }
    isSwapping = false;
    await swapping;
    expect(await readFile(join(outside, 'config.json'), 'utf8')).toBe(SECRET);
    expect(await readdir(outside)).toEqual(['config.json', 'treasure']);
    expect(successes).toBeGreaterThan(0);
  });
});

describe('file tools and special files', () => {
  test('a FIFO, a socket and a device are refused without waiting for them', async () => {
    const { workspace, call } = await createWorkspace();
    await promisify(execFile)('mkfifo', [join(workspace, 'pipe')]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(workspace, 'socket'), resolve));
    onTestFinished(() => void server.close());
    for (const path of ['pipe', 'socket']) {
      for (const [tool, input] of Object.entries(argumentsFor(path))) {
        expect((await call(tool, input)).status, `${tool} ${path}`).toBe('failed');
      }
    }
  });

  test('a sparse file of a terabyte is refused by its size', async () => {
    const { workspace, call } = await createWorkspace();
    const file = await open(join(workspace, 'giant.txt'), 'w');
    await file.truncate(1024 ** 4);
    await file.close();
    expect((await call('read_file', { path: 'giant.txt' })).text).toContain(
      'the limit is 10,000,000',
    );
    const edit = { path: 'giant.txt', old_text: 'a', new_text: 'b' };
    expect((await call('edit_file', edit)).status).toBe('failed');
  });

  test('a failed write leaves nothing behind', async () => {
    const { workspace, call } = await createWorkspace();
    await call('write_file', { path: 'notes', content: MARK });
    await call('write_file', { path: 'hello.txt/below', content: MARK });
    expect((await readdir(workspace)).toSorted()).toEqual(['hello.txt', 'notes']);
  });
});

test('the state of the gateway stays closed where a workspace contains it', async () => {
  const workspace = await temporaryFolder();
  const home = join(workspace, 'my-home');
  await mkdir(home);
  await writeFile(join(home, 'config.json'), SECRET);
  const files = createGuardedFiles({ forbidden: [home] });
  const limits = { maxBytes: 1000 };
  await expect(files.read(workspace, 'my-home/config.json', limits)).rejects.toThrow('protected');
  await expect(files.write(workspace, 'my-home/config.json', MARK)).rejects.toThrow('protected');
  await expect(files.list(workspace, 'my-home', { maxEntries: 9 })).rejects.toThrow('protected');
  await expect(files.read(home, 'config.json', limits)).rejects.toThrow('protected');
  await rm(home, { recursive: true });
});

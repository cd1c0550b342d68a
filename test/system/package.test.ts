// What `npm pack` gives, installed into an empty place as a stranger would, and run there.

import { execFile } from 'node:child_process';
import { on } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { startBotApi } from '../support/bot-api.ts';
import { breakHome, FOUND_AT_ONCE, FOUND_LATER } from '../support/broken-home.ts';
import { isFullCampaign } from '../support/campaign.ts';
import { S3_BUCKET, startS3 } from '../support/s3-server.ts';
import { laterBy } from '../support/shifted-clock.ts';

const ROOT = join(import.meta.dirname, '../..');
const HOUR_MS = 3_600_000;
/** @see test/support/packed.ts */
const TARBALL = process.env['NANOBOT_TEST_TARBALL'] ?? '';
const execute = promisify(execFile);

type Locked = { readonly version: string; readonly dev?: true; readonly optional?: true };
type Lock = { readonly packages: Readonly<Record<string, Locked>> };

let folder: string;

const nanobot = (...args: readonly string[]) => nanobotIn('home', ...args);
const nanobotIn = (home: string, ...args: readonly string[]) => nanobotWith({}, home, ...args);
function nanobotWith(
  more: Readonly<Record<string, string>>,
  home: string,
  ...args: readonly string[]
) {
  const path = `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`;
  const env = { PATH: path, HOME: folder, NANOBOT_HOME: join(folder, home), ...more };
  return execute(join(folder, 'node_modules/.bin/nanobot'), args, { env, cwd: folder });
}

/** Also where it fails, which findings do. */
const failing = (run: ReturnType<typeof nanobotIn>) =>
  run.then(
    (ran) => ({ ...ran, code: 0 }),
    (error: { readonly code: number; readonly stdout: string; readonly stderr: string }) => error,
  );

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nanobot-package-'));
  const options = ['--prefix', folder, '--prefer-offline', '--ignore-scripts', '--no-audit'];
  await execute('npm', ['install', ...options, TARBALL], { cwd: folder });
});

afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the package', () => {
  it('says its version', async () => {
    expect((await nanobot('--version')).stdout.trim()).toMatch(/^\d+\.\d+\.\d+$/);
  });

  it('says what to do on an older Node', async () => {
    const versions = `{value:{...process.versions,node:'22.1.0'}}`;
    const asOlder = `data:text/javascript,Object.defineProperty(process,'versions',${versions})`;
    const started = nanobotWith({ NODE_OPTIONS: `--import ${asOlder}` }, 'home', '--version');
    await expect(started).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/needs Node 24 or newer; this is 22.1.0\..*npm install/s),
    });
  });

  it('brings the versions that were tested, which npm ci obeys where it is unpacked', async () => {
    const unpacked = join(folder, 'unpacked');
    await mkdir(unpacked);
    await execute('tar', ['-xf', TARBALL, '-C', unpacked, '--strip-components=1']);
    const read = async (path: string): Promise<Lock> => JSON.parse(await readFile(path, 'utf8'));
    const { packages: tested } = await read(join(ROOT, 'package-lock.json'));
    const { packages: brought } = await read(join(unpacked, 'npm-shrinkwrap.json'));
    expect(brought).toEqual(tested);
    // The short campaign has npm ci run by the Dockerfile alone.
    if (!isFullCampaign()) return;
    await execute('npm', ['ci', '--omit=dev', '--prefer-offline', '--ignore-scripts'], {
      cwd: unpacked,
    });
    const { packages } = await read(join(unpacked, 'node_modules/.package-lock.json'));
    const installed = Object.entries(packages);
    const differing = installed.filter(([path, { version }]) => tested[path]?.version !== version);
    const needed = Object.entries(tested)
      .filter(([path, { dev, optional }]) => path !== '' && !dev && !optional)
      .map(([path]) => path);
    expect(needed).toContain('node_modules/sharp');
    expect(Object.keys(packages)).toEqual(expect.arrayContaining(needed));
    expect(differing).toEqual([]);
  });

  it('shows the state of a home that does not exist yet', async () => {
    const { stdout } = await nanobot('status');
    expect(stdout).toContain('demo/demo');
    expect(stdout).toMatch(/Gateway\s+not running/);
  });

  it('keeps what it compiled, and compiles again where that is damaged', async () => {
    const cache = join(folder, 'cache');
    const status = () => nanobotWith({ XDG_CACHE_HOME: cache }, 'none', 'status');
    const first = await status();
    const names = await readdir(cache, { recursive: true });
    const kept = names.filter((name) => name.endsWith('.script')).map((name) => join(cache, name));
    const contents = () => Promise.all(kept.map((path) => readFile(path)));
    const intact = await contents();
    expect(intact.map(({ length }) => length > 100_000)).toContain(true);
    expect((await status()).stdout).toBe(first.stdout);
    expect(await contents()).toEqual(intact);
    const damaged = intact.map((data) => data.fill(1, data.length / 2));
    await Promise.all(kept.map((path, index) => writeFile(path, damaged[index] ?? '')));
    expect((await status()).stdout).toBe(first.stdout);
    expect(await contents()).not.toEqual(damaged);
  });

  it('upgrades a configuration of the first version, and answers in the terminal, tools included', async () => {
    const { root, config } = homeOf({ NANOBOT_HOME: join(folder, 'home') });
    await mkdir(root, { mode: 0o700 });
    const first = { gateway: { host: '0.0.0.0' }, reasoning: {} };
    await writeFile(config, JSON.stringify(first), { mode: 0o600 });
    const { stdout, stderr } = await nanobot('agent', '-m', 'what time is it');
    expect(stdout).toMatch(/\d{4}-\d{2}-\d{2}/);
    expect(stderr).toContain('removed gateway.host 0.0.0.0: the web page is available only on');
    expect(JSON.parse(await readFile(config, 'utf8'))).toEqual({ version: 1 });
    expect(JSON.parse(await readFile(`${config}.v0`, 'utf8'))).toEqual(first);
  });

  it('backs up into a bucket for a recipient, proves that and restores it; and moves by a file with a passphrase', async () => {
    await using s3 = await startS3();
    const key = await generateX25519Identity();
    const identity = join(folder, 'identity');
    await writeFile(identity, `# created by age-keygen\n${key}\n`);
    const place = `s3://${S3_BUCKET}/deep/prefix`;
    const recipient = await identityToRecipient(key);
    const backup = (...args: readonly string[]) => nanobotWith(s3.env, 'home', 'backup', ...args);
    const made = await backup('create', '--to', place, '--encrypt', recipient);
    expect(made.stdout).toMatch(/^Back-up \S+ in s3:.*: \d+ files/);
    await expect(backup('verify', '--from', place)).rejects.toMatchObject({
      stderr: expect.stringContaining('--identity <file>'),
    });
    const open = ['--from', place, '--identity', identity];
    const proof = await backup('verify', ...open);
    expect(proof.stdout).toMatch(/ is good: .* Messages: [1-9]\d*, sessions: [1-9]/);
    await backup('restore', ...open, '--into', join(folder, 'restored'));
    const sessions = async (home: string) =>
      (await nanobotIn(home, 'sessions', 'list')).stdout.replace(/\S+ ago/, '');
    expect(await sessions('home')).toContain('terminal:');
    expect(await sessions('restored')).toBe(await sessions('home'));

    const file = join(folder, 'home.tar');
    const secret = { NANOBOT_BACKUP_PASSPHRASE: 'a long enough passphrase' };
    const move = ['move', '--to', file, '--encrypt', 'passphrase', '--yes'];
    const moved = await nanobotWith(secret, 'restored', ...move);
    expect(moved.stdout).toContain('nanobot backup restore home.tar');
    await expect(nanobotIn('restored', 'gateway')).rejects.toMatchObject({
      code: 4,
      stderr: expect.stringContaining(`this home moved to ${file}`),
    });
    await nanobotWith(secret, 'moved', 'backup', 'restore', file, '--takes-over');
    expect(await sessions('moved')).toBe(await sessions('home'));
    const { stdout } = await nanobotIn('moved', 'agent', '-m', 'what time is it');
    expect(stdout).toMatch(/\d{4}-\d{2}-\d{2}/);
  });

  it('finds what is wrong with a home, shows what it can fix, fixes it, and reports without secrets and texts', async () => {
    await using telegram = await startBotApi();
    const home = homeOf({ NANOBOT_HOME: join(folder, 'broken') });
    const words = 'please keep the word xylophone';
    await nanobotIn('broken', 'agent', '-m', words);
    const { apiRoot, token } = telegram;
    const channels = { telegram: { enabled: true, apiRoot, token } };
    await writeFile(home.config, JSON.stringify({ version: 1, channels }));
    await breakHome(home, telegram);
    type Finding = { check: string; level: string; fixable: boolean; remedy?: string };
    const findingsWith = async (
      env: Readonly<Record<string, string>>,
      ...flags: readonly string[]
    ): Promise<readonly Finding[]> =>
      JSON.parse((await failing(nanobotWith(env, 'broken', 'doctor', '--json', ...flags))).stdout);
    const findings = (...flags: readonly string[]) => findingsWith({}, ...flags);
    const fixable = (all: readonly Finding[]) =>
      all.filter((one) => one.fixable).map(({ check }) => check);

    const before = await findingsWith(laterBy(HOUR_MS));
    expect(fixable(before)).toEqual(FOUND_AT_ONCE);
    expect(before).toContainEqual(
      expect.objectContaining({ check: 'clock', remedy: expect.stringContaining('timedatectl') }),
    );
    for (const { level, remedy } of before) expect(level === 'ok' || remedy).toBeTruthy();
    const shown = await failing(nanobotIn('broken', 'doctor', '--fix'));
    expect(shown).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
    expect((await stat(home.config)).mode & 0o777).toBe(0o644);
    expect(fixable(await findings('--fix', '--yes'))).toEqual(FOUND_LATER);
    await writeFile(home.state, 'damage '.repeat(2000));
    const after = await findings('--fix', '--yes');
    expect(fixable(after)).toEqual([]);
    expect(after.filter(({ level }) => level === 'fail')).toEqual([]);
    expect((await nanobotIn('broken', 'sessions', 'list')).stdout).toContain('terminal:');

    const bundle = join(folder, 'support.tar.gz');
    await nanobotIn('broken', 'support-bundle', '--to', bundle);
    const { stdout } = await execute('tar', ['-xzOf', bundle]);
    expect(stdout).toContain('"recovery"');
    for (const secret of [
      token,
      'xylophone',
      'half a wo',
      'a-secret-path',
      'old.example.org',
      folder,
    ]) {
      expect(stdout).not.toContain(secret);
    }
  });

  // Of packages in the older module format the bundle makes default exports.
  it('loads packages on need, by the names that they export', async () => {
    const { stdout } = await nanobot('skills', 'list');
    expect(stdout).toMatch(/skill-creator +shipped +ready/);
  });

  it('has the thread that reads pages whole', async () => {
    const file = join(folder, 'node_modules/nanobot-gateway/dist/reading-worker.js');
    const worker = new Worker(file, { env: {} });
    const said = on(worker, 'message');
    const html = '<title>Oats</title><p style="display:none">Hidden</p><p>Rolled oats</p>';
    const page = {
      bytes: Buffer.from(html),
      contentType: 'text/html',
      url: 'https://shop.example/',
    };
    worker.postMessage({ kind: 'read', page });
    expect((await said.next()).value).toEqual([{ kind: 'ready' }]);
    const shown = { title: 'Oats', text: 'Rolled oats' };
    expect((await said.next()).value).toEqual([{ kind: 'read', page: shown }]);
    await worker.terminate();
  });

  it('says under which licenses the packages in its bundle are', async () => {
    const dist = join(folder, 'node_modules/nanobot-gateway/dist');
    const texts = await readFile(join(dist, 'THIRD-PARTY-LICENSES.txt'), 'utf8');
    expect(texts).toMatch(/^zod [\d.]+ \(MIT\)$/m);
    expect(texts).toMatch(/^@whiskeysockets\/baileys \S+ \(MIT\)$/m);
    expect(texts).not.toMatch(/^libsignal /m);
  });
});

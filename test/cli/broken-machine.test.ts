// What a person reads whose machine does not play along: the home, the port, the disk, the key.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, test } from 'vitest';
import { runCli } from '../../src/cli/cli.ts';
import { checkAddress } from '../../src/cli/doctor/checks.ts';
import { checkConfigFile, checkSecrets, checkState } from '../../src/cli/doctor/gateway-checks.ts';
import { checkHome } from '../../src/cli/doctor/machine-checks.ts';
import { checkModel, checkTelegram } from '../../src/cli/doctor/remote-checks.ts';
import { explainError } from '../../src/cli/explain-error.ts';
import { createTerminal } from '../../src/cli/terminal.ts';
import { openDatabase } from '../../src/kernel/bus/store/database.ts';
import { configSchema } from '../../src/kernel/config/config.ts';
import { saveConfig } from '../../src/kernel/config/files/config-file.ts';
import { openHome } from '../../src/kernel/config/files/first-run.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { hasStrace } from '../support/strace.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { MAIN, runNanobot } from './run-nanobot.ts';

const canTrace = await hasStrace();
if (!canTrace) console.log('skipped: a disk that fails (strace may not watch a process)');

let folder: string;

beforeEach(async () => {
  folder = await temporaryFolder();
});
const terminalOf = (root: string) => ({
  ...createTerminal(process),
  env: {},
  home: homeOf({ NANOBOT_HOME: root }),
});

test('a home that is a file, or lies below one, is said in words by every command and by the doctor', async () => {
  const file = join(folder, 'file');
  await writeFile(file, '');
  for (const root of [file, join(file, 'below')]) {
    const terminal = terminalOf(root);
    const error = await openHome(terminal.home, {}).catch((thrown: unknown) => thrown);
    const [line = ''] = explainError(error, {}, terminal.home);
    expect(line).toContain('NANOBOT_HOME');
    expect(line).not.toMatch(/ENOTDIR|EEXIST|NANOBOT_DEBUG/);
    expect((await checkHome(terminal.home)).map(({ level }) => level)).toEqual(['fail']);
    expect((await checkConfigFile(terminal)).findings[0]?.level).toBe('fail');
  }
});

test('files and dead links in the place of folders, and folders in the place of files, are named', async () => {
  const { home } = terminalOf(folder);
  await openHome(home, {});
  for (const [path, make] of [
    [home.media, () => symlink(join(folder, 'unplugged'), home.media)],
    [home.logs, () => writeFile(home.logs, '')],
    [home.token, () => mkdir(home.token)],
    [home.config, () => mkdir(home.config)],
  ] as const) {
    await rm(path, { recursive: true, force: true });
    await make();
    const { stdout } = await runNanobot(['doctor'], { home: folder });
    const { code, stderr } = await runNanobot(['gateway'], { home: folder });
    expect(stdout).toMatch(new RegExp(`✗ [a-z]+ +.*${path} is a`));
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(path) });
    expect(stderr).not.toContain('NANOBOT_DEBUG');
    await rm(path, { recursive: true });
    await openHome(home, {});
  }
});

test('a home where the system takes no new folder is said in words', async () => {
  const { home } = terminalOf('/proc/x');
  const error = await openHome(home, {}).catch((thrown: unknown) => thrown);
  expect(explainError(error, {}, home)[0]).toMatch(/\/proc\/x is on a read-only.*NANOBOT_HOME/);
});

test('a workspace or an address that cannot be had is said with its setting', async () => {
  const workspace = '/dev/null/below';
  const gateway = { host: 'no such host', token: 'a-token-of-sixteen-or-more' };
  const refused = async (config: object) => {
    await writeFile(join(folder, 'config.json'), JSON.stringify({ version: 1, ...config }));
    return (await runNanobot(['gateway'], { home: folder })).stderr;
  };
  expect(await refused({ agents: { defaults: { workspace } } })).toContain(
    'Set agents.defaults.workspace to another folder',
  );
  expect(await refused({ gateway })).toContain('Set gateway.host.');
});

test('a home that is still to be made is no fault', async () => {
  const terminal = terminalOf(join(folder, 'new', 'home'));
  expect(await checkHome(terminal.home)).toEqual([]);
  expect((await checkConfigFile(terminal)).findings).toMatchObject([
    { level: 'ok', text: 'no config.json yet; defaults apply' },
  ]);
});

test.each([
  ['EACCES', 'may not read or write'],
  ['EROFS', 'read-only disk'],
  ['ENOSPC', 'the disk of /h is full'],
])('%s is explained with what to do', (code, words) => {
  const error = Object.assign(new Error(`${code}: x, open '/h/state'`), { code, path: '/h/state' });
  const [line] = explainError(error, {}, homeOf({ NANOBOT_HOME: '/h' }));
  expect(line).toContain(words);
  expect(line).not.toContain(code);
});

test('the doctor finds a port that another program holds', async () => {
  const terminal = terminalOf(folder);
  const other = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as AddressInfo;
  const config = configSchema.parse({ gateway: { port } });
  expect(await checkAddress(terminal, config)).toMatchObject({
    level: 'fail',
    text: `another program uses 127.0.0.1:${port}`,
  });
  await new Promise((resolve) => other.close(resolve));
  expect(await checkAddress(terminal, config)).toMatchObject({ level: 'ok' });
});

test('nobody is told to move away a store that only a newer version reads', async () => {
  const terminal = terminalOf(folder);
  await mkdir(folder, { recursive: true });
  const database = openDatabase(terminal.home.state);
  database.exec('PRAGMA user_version = 999');
  database.close();
  await using stack = new AsyncDisposableStack();
  const { findings } = await checkState(terminal, stack);
  expect(findings).toMatchObject([{ level: 'fail', text: expect.stringContaining('newer') }]);
  expect(findings[0]?.remedy).not.toContain('move state.db');
});

test('what cannot be reached is a matter of the network, not of a token or a key', async () => {
  const apiRoot = 'http://127.0.0.1:9';
  const token = '42:a-token-that-may-be-right';
  const config = configSchema.parse({
    agents: { defaults: { model: 'openai/sim' } },
    providers: { openai: { apiKey: 'sk-x', apiBase: `${apiRoot}/v1` } },
    channels: { telegram: { enabled: true, token, apiRoot } },
  });
  const [telegram] = await checkTelegram(config);
  expect(telegram).toMatchObject({ level: 'fail', remedy: expect.stringContaining('network') });
  const model = await checkModel(terminalOf(folder), config, true);
  expect(model).toMatchObject({ level: 'fail', remedy: expect.stringContaining('network') });
  expect(model.text).not.toContain('.:');
});

test('a vendor that is misspelt is guessed, and one that is none is answered with the list', async () => {
  const ask = (model: string) =>
    checkModel(terminalOf(folder), configSchema.parse({ agents: { defaults: { model } } }), false);
  expect((await ask('antropic/claude-x')).remedy).toContain('Did you mean anthropic/claude-x?');
  expect((await ask('foo/bar')).remedy).toContain('anthropic, openai, openrouter');
});

test('what is asked for and is not there has a code of its own, and a value that does not fit changes nothing', async () => {
  const lines: string[] = [];
  const say = (line: string) => void lines.push(line);
  const terminal = { ...terminalOf(folder), print: say, note: say, tell: say };
  expect(await runCli(['skills', 'show', 'nope'], terminal)).toBe(6);
  expect(await runCli(['cron', 'remove', 'nope'], terminal)).toBe(6);
  expect(await runCli(['config', 'set', 'gateway.port', 'x'], terminal)).toBe(3);
  expect(lines.join('\n')).toMatch(/Nothing changed:\n +gateway\.port/);
});

test('the doctor reports every check on a disk that can only be read', async () => {
  const root = join(folder, 'home');
  const { home } = terminalOf(root);
  await openHome(home, {});
  openDatabase(home.state).close();
  const mounted = spawnSync('unshare', ['--mount', 'mount', '--bind', root, root]);
  if (mounted.status !== 0) return console.log('skipped: a disk that can only be read (no mounts)');
  const script = `mount --bind "${root}" "${root}" && mount -o remount,ro,bind "${root}" && exec "${process.execPath}" src/main.ts doctor`;
  const { stdout, stderr } = spawnSync('unshare', ['--mount', 'sh', '-c', script], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, NANOBOT_HOME: root },
  });
  expect(stderr).toBe('');
  expect(stdout).toMatch(/✗ home +.*cannot write to/);
  expect(stdout).toMatch(/✗ store +.*read-only disk/);
  for (const check of ['node', 'disk', 'config', 'gateway', 'model', 'secrets']) {
    expect(stdout).toMatch(new RegExp(`[✓!✗] ${check} `));
  }
});

test.skipIf(!canTrace).each([
  ['a file', [], 'gateway-token failed (EIO: i/o error, fsync). Check the disk, then'],
  ['the store', ['-P', 'state.db-wal'], 'state.db (SQLite error 10'],
])('a start whose disk fails at %s says which and what to do', async (_, only, words) => {
  const config = { version: 1, gateway: { port: 0 } };
  await writeFile(join(folder, 'config.json'), JSON.stringify(config));
  const paths = only.map((arg) => (arg === '-P' ? arg : join(folder, arg)));
  const { status, stderr } = spawnSync(
    'strace',
    [
      ...['-f', '-o', '/dev/null', '-e', 'trace=fsync', '-e', 'inject=fsync:error=EIO', ...paths],
      ...[process.execPath, 'src/main.ts', 'gateway'],
    ],
    {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'] ?? '', HOME: folder, NANOBOT_HOME: folder },
    },
  );
  expect(stderr).toContain(words);
  expect(stderr).toMatch(/Check the disk.*, then/);
  expect(stderr).not.toContain('NANOBOT_DEBUG');
  expect(status).toBe(1);
});

test('the doctor has nothing to say against what the setup wrote into a private file', async () => {
  const root = join(folder, 'home');
  const terminal = terminalOf(root);
  await openHome(terminal.home, {});
  await saveConfig(terminal.home, { channels: { telegram: { token: '1:x' } } }, {});
  const { loaded } = await checkConfigFile(terminal);
  if (loaded === undefined) throw new Error('the configuration does not load');
  expect(checkSecrets(loaded)).toMatchObject({
    level: 'ok',
    text: expect.stringContaining('channels.telegram.token'),
  });
});

describe('behind whose output the disk is full', () => {
  async function start(...args: readonly string[]) {
    await using full = await open('/dev/full', 'w');
    const child = spawn(process.execPath, [MAIN, ...args], {
      env: { PATH: process.env['PATH'] ?? '', HOME: folder, NANOBOT_HOME: folder },
      stdio: ['ignore', full.fd, 'pipe'],
    });
    return { child, stderr: Readable.from(child.stderr ?? []) };
  }
  const said = /^nanobot: the output cannot be written: ENOSPC/;

  test('a command fails, so that nobody keeps half an export', async () => {
    const { child, stderr } = await start('config', 'show');
    const [printed, [code]] = await Promise.all([text(stderr), once(child, 'exit')]);
    expect(printed).toMatch(said);
    expect(code).toBe(1);
  });

  test('a gateway goes on', async () => {
    await writeFile(join(folder, 'config.json'), '{"version":1,"gateway":{"port":0}}');
    const { child, stderr } = await start('gateway');
    const [line] = await once(stderr, 'data');
    expect(String(line)).toMatch(said);
    const { stdout } = await runNanobot(['status', '--json'], { home: folder });
    expect(JSON.parse(stdout)).toMatchObject({ gateway: { pid: child.pid } });
    child.kill('SIGINT');
    await once(child, 'exit');
  });
});

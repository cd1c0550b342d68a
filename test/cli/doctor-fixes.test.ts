// What `nanobot doctor --fix` does: each fix removes its finding and loses nothing; the checks and
// the fixes run without a terminal.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, expect, test } from 'vitest';
import { examine } from '../../src/cli/doctor/checks.ts';
import type { Finding } from '../../src/cli/doctor/machine-checks.ts';
import { clockFinding } from '../../src/cli/doctor/remote-checks.ts';
import { openDatabase } from '../../src/kernel/bus/store/database.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { holdHome } from '../../src/kernel/bus/store/home-lock.ts';
import { openHome } from '../../src/kernel/config/files/first-run.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  sessionKey,
  turnIdOf,
} from '../../src/kernel/message/ids.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { startBotApi } from '../support/bot-api.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runNanobot } from './run-nanobot.ts';

let root = '';
const machine = () => {
  const env = { NANOBOT_HOME: root };
  return { home: homeOf(env), env, clock: systemClock };
};
const writeConfig = (config: object) =>
  writeFile(join(root, 'config.json'), JSON.stringify({ version: 1, ...config }), { mode: 0o600 });

beforeEach(async () => {
  root = await temporaryFolder();
  await writeConfig({});
  await openHome(machine().home, machine().env);
});
async function found(check: string): Promise<Finding | undefined> {
  return (await examine(machine(), false)).find((finding) => finding.check === check);
}

/** The finding, whose fix is carried out; afterwards it is gone. */
async function fixed(check: string): Promise<Finding> {
  const finding = await found(check);
  if (finding?.fix === undefined)
    throw new Error(`no fix for ${check}: ${JSON.stringify(finding)}`);
  expect(finding.fix.text).not.toContain('\n');
  await finding.fix.run();
  expect((await found(check))?.level ?? 'ok').toBe('ok');
  return finding;
}

const store = () =>
  openEmbeddedStore({ path: machine().home.state, clock: systemClock, log: silentLogger });

test('a sound home has nothing to fix', async () => {
  await (await store())[Symbol.asyncDispose]();
  const findings = await examine(machine(), false);
  expect(findings.filter(({ fix }) => fix !== undefined)).toEqual([]);
});

test('missing folders are created', async () => {
  await (await store())[Symbol.asyncDispose]();
  const { home } = machine();
  await rm(home.sessions, { recursive: true });
  await rm(home.workspace, { recursive: true });
  await fixed('folders');
  expect(existsSync(home.sessions) && existsSync(join(home.workspace, 'AGENTS.md'))).toBe(true);
});

test('a lock file that is no lock is removed, and what a killed gateway left', async () => {
  const { home } = machine();
  await writeFile(
    home.lock,
    'not a lock, but some text that is long enough to be read\n'.repeat(50),
  );
  expect((await fixed('lock')).level).toBe('fail');
  await writeFile(home.runtime, JSON.stringify({ pid: 999_999_999, startedAt: 1 }));
  expect((await fixed('lock')).level).toBe('warn');
  expect(existsSync(home.runtime)).toBe(false);
});

test('a damaged search index is removed', async () => {
  const { home } = machine();
  await writeFile(home.index, 'not an index '.repeat(500));
  await fixed('index');
  expect(existsSync(home.index)).toBe(false);
});

test('a conversation that ends within a line is completed, and what was cut off is kept', async () => {
  const file = join(machine().home.sessions, 'telegram.default.700_2026-01-02.jsonl');
  const header =
    '{"_type":"metadata","session_key":"telegram:default:700","created_at":1,"updated_at":1,"metadata":{}}\n';
  await writeFile(file, `${header}{"role":"user","content":"half a wo`);
  await fixed('conversations');
  expect(await readFile(file, 'utf8')).toBe(header);
  expect(await readFile(`${file}.damaged`, 'utf8')).toContain('half a wo');
});

test('temporary files are deleted once they are a day old', async () => {
  const { home } = machine();
  const name = '.config.json.2a0c7d7e-0000-4000-8000-000000000000.tmp';
  const old = [join(root, name), `${home.state}.snapshot-new`];
  const young = join(home.sessions, name);
  for (const path of [...old, young]) await writeFile(path, 'x');
  const before = Date.now() / 1000 - 2 * 86_400;
  for (const path of old) await utimes(path, before, before);
  await fixed('temporary');
  expect([...old, young].map((path) => existsSync(path))).toEqual([false, false, true]);
});

test('an earlier schema is left alone by the checks and migrated by the fix', async () => {
  const { home } = machine();
  openDatabase(home.state).close();
  const older = new DatabaseSync(home.state);
  older.exec('DROP TABLE session_entry; PRAGMA user_version = 7');
  older.close();
  const version = () => {
    const database = new DatabaseSync(home.state, { readOnly: true });
    const row = database.prepare('PRAGMA user_version').get();
    database.close();
    return row?.['user_version'];
  };
  await examine(machine(), false);
  expect(version()).toBe(7);
  await fixed('schema');
  expect(version()).toBe(8);
});

test('live previews of a channel that is off are forgotten', async () => {
  const opened = await store();
  const chat = { channel: channelName('telegram'), account: DEFAULT_ACCOUNT, chat: chatId('700') };
  const turnId = turnIdOf(sessionKey('telegram:default:700'), 5);
  await opened.recordDraft({ turnId, chat });
  await opened[Symbol.asyncDispose]();
  await fixed('drafts');
});

test('a damaged store is rebuilt, but not while a gateway runs', async () => {
  const { home } = machine();
  await (await store())[Symbol.asyncDispose]();
  await writeFile(home.state, 'damage '.repeat(2000));
  const held = await holdHome(home.lock, { pid: process.pid });
  const busy = await found('store');
  await expect(busy?.fix?.run()).rejects.toMatchObject({ code: 'home_locked' });
  expect((await readFile(home.state, 'utf8')).startsWith('damage')).toBe(true);
  await held[Symbol.asyncDispose]();
  await fixed('store');
  expect(await found('recovery')).toMatchObject({ level: 'warn' });
  const kept =
    (await readdir(root)).find((name) => /^state\.db\.damaged-[\dT-]+$/.test(name)) ?? '';
  expect((await readFile(join(root, kept), 'utf8')).startsWith('damage')).toBe(true);
});

test('a webhook that takes the messages of the bot away is removed', async () => {
  await using telegram = await startBotApi();
  const { apiRoot, token } = telegram;
  await writeConfig({ channels: { telegram: { enabled: true, apiRoot, token } } });
  telegram.setWebhook('https://old.example.org/a-secret-path');
  const { text } = await fixed('telegram-webhook');
  expect(text).toContain('old.example.org');
  expect(text).not.toContain('a-secret-path');
  expect(await found('clock')).toMatchObject({ level: 'ok' });
});

test('a clock that is wrong by more than a minute is named with its remedy', () => {
  expect(clockFinding(-30_000).level).toBe('ok');
  expect(clockFinding(3_600_000)).toMatchObject({
    level: 'warn',
    text: expect.stringContaining('3600 s slow'),
    remedy: expect.stringContaining('timedatectl'),
  });
});

test('the command shows what it will do, does nothing without an answer, and reports what it did', async () => {
  const { home } = machine();
  await writeFile(home.index, 'not an index '.repeat(500));
  const run = (...flags: string[]) => runNanobot(['doctor', ...flags], { home: root });
  const unanswered = await run('--fix');
  expect(unanswered.code).toBe(2);
  expect(unanswered.stderr).toMatch(/can be fixed now[\s\S]*index +delete[\s\S]*--yes/);
  expect(existsSync(home.index)).toBe(true);
  const report = JSON.parse((await run('--json')).stdout) as readonly object[];
  expect(report).toContainEqual(
    expect.objectContaining({
      check: 'index',
      level: 'warn',
      fixable: true,
      remedy: expect.any(String),
    }),
  );
  expect(report).toContainEqual(expect.objectContaining({ check: 'node', fixable: false }));
  const done = await run('--fix', '--yes');
  expect(done.stderr).toMatch(/index +fixed/);
  expect(existsSync(home.index)).toBe(false);
  expect((await stat(home.config)).mode & 0o777).toBe(0o600);
});

test('a disk that is full while the store is rebuilt leaves everything as it was, and the next try does it', async () => {
  const MB = 1_048_576;
  const disk = join(root, 'disk');
  await mkdir(disk);
  const opened = await openEmbeddedStore({
    ...{ path: join(root, 'large.db'), clock: systemClock, log: silentLogger },
  });
  await opened
    .scope('rows')
    .setMany(
      Array.from({ length: 2000 }, (_, row) => ({ key: `row ${row}`, value: 'x'.repeat(1000) })),
    );
  await opened[Symbol.asyncDispose]();
  const bytes = await readFile(join(root, 'large.db'));
  await writeFile(
    join(root, 'large.db'),
    bytes.fill(0x55, bytes.length / 2, bytes.length / 2 + 4096),
  );
  const doctor = `NANOBOT_HOME="${disk}" "${process.execPath}" src/main.ts doctor --fix --yes 2>&1 | grep -E "store +(fixed|not fixed)"`;
  const script = [
    `mount -t tmpfs -o size=32m tmpfs "${disk}" || exit 77`,
    `cp "${root}/large.db" "${disk}/state.db"; chmod 700 "${disk}"`,
    `head -c ${32 * MB - bytes.length - MB} /dev/zero > "${disk}/filler"`,
    doctor,
    `cmp "${root}/large.db" "${disk}/state.db" && echo same`,
    `rm "${disk}/filler"`,
    doctor,
    `cmp -s "${root}/large.db" "${disk}"/state.db.damaged-*[0-9] && echo kept`,
  ].join('\n');
  const { status, stdout } = spawnSync('unshare', ['--mount', 'sh', '-c', script], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '', HOME: root },
  });
  if (status === null || status === 77) return console.log('skipped: a full disk (no mounts)');
  expect(stdout).toMatch(/not fixed: .*full[\s\S]*same[\s\S]*store +fixed[\s\S]*kept/);
});

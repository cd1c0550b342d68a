// The commands of whoever runs a gateway: what became of a message, who may talk, what is on disk.

import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { AuditFile } from '../../src/kernel/observe/audit.ts';
import { AUDIT_SCOPE } from '../../src/kernel/observe/build-telemetry.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { runNanobot, type TemporaryHome, temporaryHome } from './run-nanobot.ts';

let home: TemporaryHome;
const run = (...args: string[]) => runNanobot(args, { home: home.path });

beforeAll(async () => {
  home = await temporaryHome();
  await run('agent', '-m', 'what time is it', '-s', 'clock');
  await run('agent', '-m', 'remember the blue bicycle', '-s', 'memory');
});
afterAll(() => home[Symbol.asyncDispose]());

describe('before anything ran', () => {
  test.each([
    ['trace', 'last'],
    ['dead', 'list'],
    ['pair', 'list'],
  ])('%s %s says so, and makes nothing', async (...args) => {
    const empty = await temporaryHome();
    const { code, stderr } = await runNanobot(args, { home: empty.path });
    expect(code).toBe(6);
    expect(stderr).toContain('nanobot gateway');
    await expect(stat(join(empty.path, 'state.db'))).rejects.toThrow('ENOENT');
    await empty[Symbol.asyncDispose]();
  });
});

describe('trace', () => {
  test('tells the life of the newest message and of its answer', async () => {
    const { code, stdout } = await run('trace', 'last');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^inbound terminal:default:memory:/);
    expect(stdout).toContain('outbound terminal:memory#');
  });

  test('as JSON, by its id and by that of its turn', async () => {
    const last = JSON.parse((await run('trace', 'last', '--json')).stdout);
    for (const id of [last.id, last.turnId]) {
      expect(JSON.parse((await run('trace', id, '--json')).stdout)).toEqual(last);
    }
    expect(last.answers).toHaveLength(1);
  });

  test('a message nobody knows is not found', async () => {
    expect((await run('trace', 'telegram:default:1')).code).toBe(6);
  });
});

test.each(['confirm', 'forget'])('cluster %s of a host that was not found', async (decision) => {
  const { code, stderr } = await run('cluster', decision, '10.0.0.1:1');
  expect(code).toBe(6);
  expect(stderr).toContain('10.0.0.1:1');
});

describe('audit', () => {
  test('is verified, with what a killed process had begun, until somebody touches it', async () => {
    const path = join(home.path, 'state.db');
    const options = { path, clock: systemClock, log: silentLogger };
    await using store = await openEmbeddedStore(options);
    const audit = new AuditFile({
      ...options,
      path: join(home.path, 'audit.jsonl'),
      state: store.scope(AUDIT_SCOPE),
    });
    const call = (id: string, status: string) =>
      ({ kind: 'tool_call', fields: { call: id, tool: 'exec', status } }) as const;
    await audit.enter(call('1', 'begun'));
    audit.note(call('1', 'ok'));
    await audit.enter(call('2', 'begun'));
    const { code, stdout, stderr } = await run('audit', 'verify');
    expect(code).toBe(0);
    expect(stdout + stderr).toContain('1 call was started, but no outcome is recorded');
    expect(stdout).toMatch(/tool_call {2}call=2 tool=exec status=begun/);
    expect(stdout).not.toContain('call=1');
    const whole = await readFile(join(home.path, 'audit.jsonl'), 'utf8');
    await writeFile(join(home.path, 'audit.jsonl'), whole.replace('exec', 'time'));
    expect((await run('audit', 'verify')).code).toBe(1);
    await writeFile(join(home.path, 'audit.jsonl'), whole);
  });
});

describe('pair', () => {
  test('a person let in by hand is listed until revoked', async () => {
    expect((await run('pair', 'approve', 'telegram', '42')).code).toBe(0);
    const listed = JSON.parse((await run('pair', 'list', '--json')).stdout);
    expect(listed.approved).toMatchObject([{ channel: 'telegram', userId: '42' }]);
    expect((await run('pair', 'revoke', 'telegram', '42')).code).toBe(0);
    expect((await run('pair', 'revoke', 'telegram', '42')).code).toBe(6);
  });

  test('the machine’s user says what a person is, or that they stay out', async () => {
    expect((await run('pair', 'approve', 'telegram', '43', '--role', 'owner')).code).toBe(0);
    expect((await run('pair', 'list')).stdout).toMatch(/owner +telegram +43/);
    expect((await run('pair', 'block', 'telegram', '43')).code).toBe(0);
    expect((await run('pair', 'list')).stdout).toMatch(/blocked +telegram +43/);
    expect((await run('pair', 'approve', 'telegram', '43', '--role', 'king')).code).toBe(2);
    expect((await run('pair', 'revoke', 'telegram', '43')).code).toBe(0);
    expect((await run('pair', 'drop', 'telegram', '43')).code).toBe(6);
  });

  test('a WhatsApp number is kept in one spelling, however it was written', async () => {
    expect((await run('pair', 'approve', 'whatsapp', '0049 151/123-4567')).code).toBe(0);
    const listed = JSON.parse((await run('pair', 'list', '--json')).stdout);
    expect(listed.approved).toMatchObject([{ channel: 'whatsapp', userId: '+491511234567' }]);
    expect((await run('pair', 'revoke', 'whatsapp', '+49 151 1234567')).code).toBe(0);
  });

  test.each([
    ['a name that can change hands', ['telegram', '@ada'], 2],
    ['a channel that does not exist', ['telegrm', '42'], 6],
    ['an address that is none', ['email', 'ada'], 2],
    ['a number without its country code', ['whatsapp', '0151 1234567'], 2],
    ['everybody at once', ['whatsapp', '*'], 2],
  ])('%s is refused', async (_name, args, code) => {
    expect((await run('pair', 'approve', ...args)).code).toBe(code);
  });
});

describe('dead', () => {
  test('an empty list is an empty list', async () => {
    expect(JSON.parse((await run('dead', 'list', '--json')).stdout)).toEqual([]);
  });

  test.each([
    ['retry without saying what', ['retry'], 2],
    ['retry of what is not there', ['retry', 'x'], 6],
    ['drop in a script without --yes', ['drop', 'x'], 2],
  ])('%s changes nothing', async (_name, args, code) => {
    expect((await run('dead', ...args)).code).toBe(code);
  });
});

describe('sessions', () => {
  test('lists, shows and exports conversations', async () => {
    const keys = JSON.parse((await run('sessions', 'list', '--json')).stdout).map(
      (session: { readonly key: string }) => session.key,
    );
    expect(keys).toEqual(['terminal:memory', 'terminal:clock']);
    expect((await run('sessions', 'show', 'terminal:clock')).stdout).toContain('what time is it');
    const { stdout } = await run('sessions', 'export', 'terminal:clock', '--format', 'jsonl');
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.length).toBeGreaterThan(3);
  });

  test('says the usual age in days, and how a file in JSON is exported', async () => {
    expect((await run('sessions', 'archive', '--help')).stdout).toContain('(default: 30d)');
    const { stdout } = await run('sessions', '--help');
    expect(stdout).toContain('export telegram:42 --format jsonl > chat.jsonl');
  });

  test('finds text, and says by its exit code when there is none', async () => {
    expect((await run('sessions', 'search', 'blue', 'bicycle')).stdout).toContain(
      'terminal:memory',
    );
    expect((await run('sessions', 'search', 'red bicycle')).code).toBe(6);
  });

  test.each([
    ['a session that is none', ['show', 'nonsense'], 2],
    ['a session that is not there', ['export', 'terminal:nobody'], 6],
    ['a list of nothing', ['list', '--limit', '0'], 2],
    ['purging without a span', ['purge', '--yes'], 2],
    ['purging by a span that is none', ['purge', '--older-than', 'soon', '--yes'], 2],
    ['destroying in a script without --yes', ['nuke'], 2],
  ])('%s is refused', async (_name, args, code) => {
    expect((await run('sessions', ...args)).code).toBe(code);
  });

  test('nuke leaves no word of a conversation in the home', async () => {
    const { code, stderr } = await run('sessions', 'nuke', '--yes');
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /Deleted 2 conversations\. Deleted 2 files .* 1 log file\. The audit stays/,
    );
    await expect(stat(join(home.path, 'metrics.jsonl'))).rejects.toThrow('ENOENT');
    expect(JSON.parse((await run('sessions', 'list', '--json')).stdout)).toEqual([]);
    const trace = JSON.parse((await run('trace', 'last', '--json')).stdout);
    expect(JSON.stringify(trace)).not.toContain('bicycle');
  });
});

test('a skill that is not there is not asked about', async () => {
  const { code, stderr } = await run('skills', 'remove', 'nope');
  expect([code, stderr]).toEqual([6, expect.stringContaining('nope')]);
  expect(stderr).not.toContain('--yes');
});

describe('the command line itself', () => {
  test.each([
    ['--help', 0],
    ['--version', 0],
    ['no-such-command', 2],
    ['config nonsense', 2],
    ['gateway --port many', 2],
    ['sessions list --limit x', 2],
    ['channels login pigeon', 6],
    ['channels login web', 0],
  ])('%s leaves with %i', async (line, code) => {
    expect((await run(...line.split(' '))).code).toBe(code);
  });

  test('an error is one line without a stack, unless NANOBOT_DEBUG asks for it', async () => {
    await home.writeConfig({ version: 1, gateway: { port: 'x' } });
    const plain = await runNanobot(['status'], { home: home.path });
    const debug = await runNanobot(['status'], { home: home.path, env: { NANOBOT_DEBUG: '1' } });
    expect(plain.code).toBe(3);
    expect(plain.stderr).not.toContain('    at ');
    expect(debug.stderr).toContain('    at ');
  });
});

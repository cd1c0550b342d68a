// Moving a home by ssh and by a file: the old one does not start any more, the new one answers; and
// accounts that run in one place only. A trial contacts nothing.

import { execFile } from 'node:child_process';
import { chmod, cp, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, expect, test } from 'vitest';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { readInstance } from '../../src/kernel/instance.ts';
import { MAIN, runNanobot } from '../cli/run-nanobot.ts';
import { makeTestHome } from '../support/gateway-process.ts';
import { hasStrace } from '../support/strace.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');
const canTrace = await hasStrace();

let folder: string;

beforeEach(async () => {
  folder = await temporaryFolder();
});
/** Runs what it is told on this machine, as another user with another home would. */
async function fakeSsh(): Promise<Readonly<Record<string, string>>> {
  const path = join(folder, 'ssh');
  await writeFile(
    path,
    `#!/bin/sh\nshift\nunset NANOBOT_HOME\nHOME=${folder}/there exec sh -c "$*"\n`,
  );
  await chmod(path, 0o755);
  return { PATH: `${folder}:${dirname(process.execPath)}:${process.env['PATH']}` };
}

test('a home moves by ssh while its gateway runs: it is stopped, starts there, and not here any more', async () => {
  await using home = await makeTestHome({ gateway: { port: 0 } });
  const gateway = await home.start();
  const env = await fakeSsh();
  const there = join(folder, 'there', "ann's home");
  const command = `${process.execPath} ${MAIN}`;
  const args = ['move', '--to', `ann@server:${there}`, '--command', command, '--yes'];
  const moved = await runNanobot(args, { home: home.path, env });
  const { stdout } = await runNanobot(['status', '--json'], { home: there });
  const running: unknown = JSON.parse(stdout).gateway;
  try {
    expect(moved.stderr).toBe('');
    expect(moved.stdout).toContain('nanobot runs at ann@server');
    expect(running).toMatchObject({ pid: expect.any(Number) });
    expect(await gateway.exited).toBe(0);
    const refused = await runNanobot(['gateway'], { home: home.path });
    expect(refused.code).toBe(4);
    expect(refused.stderr).toContain('this home moved to ann@server');
    const status = await runNanobot(['status'], { home: home.path });
    expect(status.stdout).toMatch(/does not start: this home moved to ann@server.*move --undo/);
    const doctor = await runNanobot(['doctor', '--json'], { home: home.path });
    expect(JSON.parse(doctor.stdout)).toContainEqual(
      expect.objectContaining({
        ...{ check: 'gateway', level: 'fail' },
        remedy: expect.stringContaining('move --undo'),
      }),
    );
    const [old, now] = [home.path, there].map((root) => homeOf({ NANOBOT_HOME: root }));
    if (old === undefined || now === undefined) throw new Error('not there');
    expect((await readInstance(now))?.epoch).toBe((await readInstance(old))?.epoch);
    expect(await readInstance(now)).toMatchObject({ epoch: 2 });
    expect((await readInstance(now))?.held).toBeUndefined();
  } finally {
    if (typeof running === 'object' && running !== null && 'pid' in running) {
      process.kill(Number(running.pid), 'SIGKILL');
    }
  }
});

test('a move that the other machine refuses changes nothing', async () => {
  await using home = await makeTestHome({ gateway: { port: 0 } });
  const env = await fakeSsh();
  const there = join(folder, 'there', 'taken');
  await cp(home.path, there, { recursive: true });
  const command = `${process.execPath} ${MAIN}`;
  const args = ['move', '--to', `ann@server:${there}`, '--command', command, '--yes'];
  const moved = await runNanobot(args, { home: home.path, env });
  expect(moved.code).toBe(1);
  expect(moved.stderr).toContain('is not empty');
  expect((await readInstance(homeOf({ NANOBOT_HOME: home.path })))?.moved).toBeUndefined();
});

test('accounts with keys that run in one place only stay off in a restored copy until it takes over', async () => {
  await using original = await makeTestHome({
    gateway: { port: 0 },
    channels: { whatsapp: { enabled: true } },
  });
  const place = join(folder, 'place');
  await runNanobot(['backup', 'create', '--to', place], { home: original.path });
  await using copy = await makeTestHome({});
  const from = homeOf({ NANOBOT_HOME: original.path });
  const into = homeOf({ NANOBOT_HOME: copy.path });
  const words = ['backup', 'restore', '--from', place, '--force'];
  const restored = await runNanobot(words, { home: copy.path });
  expect(restored.stdout).toContain('nanobot backup takeover');
  const gateway = await copy.start();
  const status = async () => {
    const reply = await fetch(`${gateway.address}/api/status`, { headers: gateway.credentials });
    const { channels } = (await reply.json()) as {
      channels: readonly { readonly name: string; readonly status: object }[];
    };
    return channels.find(({ name }) => name === 'whatsapp')?.status;
  };
  await expect.poll(status).toEqual({
    kind: 'off',
    remedy: `This account continues in ${original.path}. To run it here again: nanobot backup takeover`,
  });
  await gateway.stop();
  const args = ['move', '--to', join(folder, 'copy.tar'), '--yes'];
  const moved = await runNanobot(args, { home: copy.path });
  expect(moved.stdout).toContain('nanobot backup restore copy.tar\n');
  await runNanobot(['move', '--undo', '--yes'], { home: copy.path });
  expect(await readInstance(into)).toMatchObject({ epoch: 3, held: { elsewhere: original.path } });
  const taken = await runNanobot(['backup', 'takeover', '--yes'], { home: copy.path });
  expect(taken.code, taken.stderr).toBe(0);
  expect((await readInstance(into))?.held).toBeUndefined();
  expect((await readInstance(from))?.held?.elsewhere).toBe(copy.path);
});

test.skipIf(!canTrace)('a trial of a home with everything on contacts nothing', async () => {
  const home = join(folder, 'home');
  await cp(join(ROOT, 'test/homes/v1/home'), home, { recursive: true });
  const written = JSON.parse(await readFile(join(home, 'config.json'), 'utf8'));
  const config = {
    ...written,
    agents: { defaults: { model: 'openai/gpt-6-sol' } },
    providers: { openai: { apiKey: 'sk-of-nobody', apiBase: 'http://192.0.2.1:1/v1' } },
    channels: { telegram: { enabled: true, token: '123456:ABC-DEF', allowFrom: ['1'] } },
    mcpServers: { far: { url: 'https://192.0.2.2/mcp' } },
    cluster: { enabled: true },
    telemetry: { otel: { endpoint: 'http://192.0.2.3:4318/v1/traces' } },
  };
  await writeFile(join(home, 'config.json'), JSON.stringify(config));
  const log = join(folder, 'calls');
  const args = ['-f', '-qq', '-e', 'trace=connect,sendto,sendmsg,bind', '-o', log];
  const { stdout } = await promisify(execFile)(
    'strace',
    [...args, process.execPath, MAIN, 'gateway', '--trial'],
    { env: { PATH: process.env['PATH'], HOME: folder, NANOBOT_HOME: home } },
  );
  expect(JSON.parse(stdout)).toMatchObject({ counts: { messages: 74, sessions: 7 } });
  expect((await readFile(log, 'utf8')).match(/AF_INET6?.*/g) ?? []).toEqual([]);
});

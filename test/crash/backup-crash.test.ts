// Back-ups in the middle of traffic, and back-ups, restores and moves that are killed or find no room
// at any step: what is listed is complete, what was there stays, and the same command goes on.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createBackup, restoreBackup } from '../../src/features/backup/index.ts';
import { openPlace, type Place, readPlace } from '../../src/features/backup/places.ts';
import { snapshots } from '../../src/features/backup/repository.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { assertUsable } from '../../src/kernel/instance.ts';
import { runNanobot } from '../cli/run-nanobot.ts';
import { isFullCampaign } from '../support/campaign.ts';
import { COMPILE_CACHE } from '../support/compile-cache.ts';
import { makeTestHome } from '../support/gateway-process.ts';
import { echo } from '../support/llm-server.ts';
import { hasStrace } from '../support/strace.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const ROOT = join(import.meta.dirname, '../..');
const MADE = join(ROOT, 'test/homes/v1/home');
const OPTIONS = {
  env: {},
  s3: { endpoint: '', region: '', accessKeyId: '', secretAccessKey: '' },
  proxy: '',
};
const { signal } = new AbortController();
const unlock = () => Promise.reject(new Error('nothing is encrypted'));
const CHATS = [501, 502, 503, 504, 505, 506];
const canTrace = await hasStrace();
if (!canTrace) console.log('kills at each step skipped: strace is not there or may not trace');

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nanobot-backup-crash-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

it('a back-up in the middle of traffic has each message that was acknowledged before, and none twice', async () => {
  const allowFrom = CHATS.map(String);
  await using world = await startTelegramWorld({ respond: echo, channel: { allowFrom } });
  const { telegram } = world;
  const say = (batch: string) => {
    for (const chat of CHATS) telegram.say(chat, `please say nonce-${batch}x${chat}`);
  };
  const heard = async (batch: string) => {
    for (const chat of CHATS) await world.hears(chat, new RegExp(`nonce-${batch}x${chat}`));
  };
  say('before');
  await heard('before');
  const place = join(folder, 'place');
  const made: Promise<string>[] = [];
  for (const batch of ['one', 'two', 'three']) {
    say(batch);
    made.push(world.nanobot('backup', 'create', '--to', place));
    say(`${batch}late`);
    await heard(`${batch}late`);
  }
  await Promise.all(made);
  await world.gateway.kill();
  const all = await snapshots(await openPlace(place, OPTIONS));
  expect(all).toHaveLength(3);
  for (const { id } of isFullCampaign() ? all : all.slice(1, 2)) {
    await using copy = await makeTestHome({});
    const into = homeOf({ NANOBOT_HOME: copy.path });
    const from = await openPlace(place, OPTIONS);
    await restoreBackup({ place: from, unlock, signal, id, into, force: true });
    const gateway = await copy.start();
    const counts = async () => {
      const { stdout } = await runNanobot(['status', '--json'], { home: copy.path });
      const { pending, running, outboundQueued } = JSON.parse(stdout).messages;
      return pending + running + outboundQueued;
    };
    await expect.poll(counts, { timeout: 30_000 }).toBe(0);
    await gateway.stop();
    const lines = await sessionLines(copy.path);
    const entries = (role: string, nonce: string) =>
      lines.filter((line) => line.startsWith(`{"role":"${role}"`) && line.includes(nonce)).length;
    for (const chat of CHATS) {
      const nonce = `nonce-beforex${chat}`;
      expect([nonce, entries('user', nonce), entries('assistant', nonce)]).toEqual([nonce, 1, 1]);
      for (const batch of ['one', 'two', 'three', 'onelate', 'twolate', 'threelate']) {
        const other = `nonce-${batch}x${chat}`;
        const said = entries('user', other);
        expect([other, said <= 1, entries('assistant', other)]).toEqual([other, true, said]);
      }
    }
  }
}, 120_000);

async function sessionLines(home: string): Promise<readonly string[]> {
  const names = (await readdir(join(home, 'sessions'))).filter((name) => name.endsWith('.jsonl'));
  const texts = names.map((name) => readFile(join(home, 'sessions', name), 'utf8'));
  return (await Promise.all(texts)).join('').split('\n');
}

/** Each is killed, or refused, at this call of its kind. */
type Fault = { readonly call: 'rename' | 'fsync'; readonly at: number; readonly does: string };

const KILL = 'signal=KILL';
const FULL = 'error=ENOSPC';
const STEPS = 40;

/** In full: at each step until the command is through without having met it. */
function faults(short: readonly Fault[]): readonly Fault[] {
  if (!isFullCampaign()) return short;
  return Array.from({ length: STEPS }, (_, step) => step + 1).flatMap((at) => [
    { call: 'rename', at, does: KILL },
    { call: 'fsync', at, does: KILL },
    { call: 'rename', at, does: FULL },
    { call: 'fsync', at, does: FULL },
  ]);
}

async function runWith({ call, at, does }: Fault, home: string, ...args: readonly string[]) {
  const inject = ['-e', `trace=${call}`, '-e', `inject=${call}:${does}:when=${at}`];
  const program = [process.execPath, join(ROOT, 'src/main.ts'), ...args];
  const child = spawn('strace', ['-f', '-qq', '-o', '/dev/null', ...inject, ...program], {
    env: {
      ...COMPILE_CACHE,
      ...{ PATH: process.env['PATH'] ?? '', HOME: home, NANOBOT_HOME: home, TZ: 'UTC' },
      // The calls of its one thread are counted in order.
      UV_THREADPOOL_SIZE: '1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [[code], stdout, stderr] = await Promise.all([
    once(child, 'close'),
    text(child.stdout),
    text(child.stderr),
  ]);
  return { code, said: stdout + stderr };
}

async function filesOf(root: string): Promise<readonly string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(root.length + 1))
    .filter((path) => /^(sessions\/[^.]|workspace\/|config\.json$|state\.db$)/.test(path))
    .sort();
}

async function expectAllWhole(place: Place): Promise<void> {
  for (const { id } of await snapshots(place)) {
    const into = homeOf({ NANOBOT_HOME: join(folder, `whole-${id}`) });
    await restoreBackup({ place, unlock, signal, id, into });
    expect(await filesOf(into.root)).toEqual(await filesOf(MADE));
    await rm(into.root, { recursive: true });
  }
}

describe.skipIf(!canTrace)('at each step', () => {
  it('a back-up that ends leaves no half one, and the next one is complete', async () => {
    const home = join(folder, 'home');
    await cp(MADE, home, { recursive: true });
    const to = join(folder, 'place');
    const short: readonly Fault[] = [
      { call: 'rename', at: 4, does: KILL },
      { call: 'fsync', at: 5, does: FULL },
    ];
    let met = 0;
    for (const fault of faults(short)) {
      const { code, said } = await runWith(fault, home, 'backup', 'create', '--to', to);
      if (code !== 0) met += 1;
      if (code !== 0 && fault.does === FULL) expect(said).toMatch(/full/);
      const place = await openPlace(to, OPTIONS);
      await expectAllWhole(place);
      const { id } = await createBackup({ home: homeOf({ NANOBOT_HOME: home }), place, signal });
      expect((await snapshots(place)).map((one) => one.id)).toContain(id);
      await expectAllWhole(place);
      expect((await readdir(join(home, 'backups'))).filter((name) => /^state-/.test(name))).toEqual(
        [],
      );
      await rm(to, { recursive: true });
    }
    expect(met).toBeGreaterThan(1);
  }, 1_200_000);

  it('a restore that ends is refused by the gateway and repeated by the same command', async () => {
    const source = join(folder, 'home');
    await cp(MADE, source, { recursive: true });
    const place = await openPlace(join(folder, 'place'), OPTIONS);
    await createBackup({ home: homeOf({ NANOBOT_HOME: source }), place, signal });
    const short: readonly Fault[] = [
      { call: 'rename', at: 4, does: KILL },
      { call: 'fsync', at: 6, does: FULL },
    ];
    let met = 0;
    for (const fault of faults(short)) {
      const into = homeOf({ NANOBOT_HOME: join(folder, 'into') });
      const words = ['--from', place.name, '--into', into.root, '--takes-over', '--force'];
      const { code, said } = await runWith(fault, source, 'backup', 'restore', ...words);
      if (code !== 0) met += 1;
      if (code !== 0 && fault.does === FULL) expect(said).toMatch(/full/);
      if (existsSync(into.restoring))
        await expect(assertUsable(into)).rejects.toThrow('interrupted');
      else if (existsSync(into.config))
        expect(await filesOf(into.root)).toEqual(await filesOf(MADE));
      await restoreBackup({ place, unlock, signal, into, force: true, takesOver: true });
      await assertUsable(into);
      expect(await filesOf(into.root)).toEqual(await filesOf(MADE));
      await rm(into.root, { recursive: true });
    }
    expect(met).toBeGreaterThan(1);
  }, 1_200_000);

  it('a move that ends leaves at most one home that starts, and is repeated by the same command', async () => {
    const short: readonly Fault[] = [
      { call: 'rename', at: 4, does: KILL },
      { call: 'fsync', at: 5, does: FULL },
    ];
    let met = 0;
    for (const fault of faults(short)) {
      const home = homeOf({ NANOBOT_HOME: join(folder, 'home') });
      await cp(MADE, home.root, { recursive: true });
      const file = join(folder, 'home.tar');
      const { code } = await runWith(fault, home.root, 'move', '--to', file, '--yes');
      if (code !== 0) met += 1;
      const starts = await assertUsable(home).then(
        () => true,
        () => false,
      );
      expect(starts && existsSync(file)).toBe(false);
      if (code !== 0) {
        const again = await runNanobot(['move', '--to', file, '--yes'], { home: home.root });
        expect(again.code, again.stderr).toBe(0);
      }
      await expect(assertUsable(home)).rejects.toThrow('moved');
      await using place = await readPlace(file, OPTIONS);
      await expectAllWhole(place);
      await rm(home.root, { recursive: true });
      await rm(file);
    }
    expect(met).toBeGreaterThan(1);
  }, 1_200_000);
});

// Of the packed program: back-ups in the middle of traffic, and back-ups, restores and moves that are killed or find no room
// at any step: what is listed is complete, what was there stays, and the same command goes on.

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, it } from 'vitest';
import { createBackup } from '../../src/features/backup/create.ts';
import { openPlace, type Place, readPlace } from '../../src/features/backup/places.ts';
import { prune, snapshots } from '../../src/features/backup/repository.ts';
import { restoreBackup } from '../../src/features/backup/restore.ts';
import { type Home, homeOf } from '../../src/kernel/config/files/home.ts';
import { assertUsable, readInstance } from '../../src/kernel/instance.ts';
import { MAIN, runNanobot } from '../cli/run-nanobot.ts';
import { isFullCampaign } from '../support/campaign.ts';
import { COMPILE_CACHE } from '../support/compile-cache.ts';
import { makeTestHome } from '../support/gateway-process.ts';
import { echo } from '../support/llm-server.ts';
import { hasStrace } from '../support/strace.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

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
  folder = await temporaryFolder();
});
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
});

async function sessionLines(home: string): Promise<readonly string[]> {
  const names = (await readdir(join(home, 'sessions'))).filter((name) => name.endsWith('.jsonl'));
  const texts = names.map((name) => readFile(join(home, 'sessions', name), 'utf8'));
  return (await Promise.all(texts)).join('').split('\n');
}

/** Where a command is killed, or refused: at this call of its kind. */
type Fault = { readonly call: (typeof CALLS)[number]; readonly at: number; readonly does: string };

/** What changes a disk, and gets a file onto it. */
const CALLS = ['rename', 'fsync', 'fdatasync', 'unlink', 'mkdir', 'pwrite64'] as const;
const KILL = 'signal=KILL';
const FULL = 'error=ENOSPC';

/** In full: at each call until the command is through without having met it. */
async function atEachStep(
  short: readonly Fault[],
  run: (fault: Fault) => Promise<Ran>,
): Promise<void> {
  let met = 0;
  const fails = async (fault: Fault) => {
    const { code, said } = await run(fault).catch((error: unknown) => {
      throw new Error(`after ${Object.values(fault).join(' ')}`, { cause: error });
    });
    if (code === 0) return false;
    met += 1;
    // SQLite says no more of a file that could not be synced.
    if (fault.does === FULL) expect(said).toMatch(/full|SQLite error 10/);
    return true;
  };
  if (isFullCampaign()) {
    for (const call of CALLS) {
      for (let at = 1; await fails({ call, at, does: KILL }); at += 1) {
        if (call !== 'unlink') await fails({ call, at, does: FULL });
      }
    }
  } else for (const fault of short) await fails(fault);
  expect(met).toBeGreaterThan(1);
}

const tracing = ({ call, at, does }: Fault) => [
  ...['-f', '-qq', '-o', '/dev/null', '-e', `trace=${call}`],
  ...['-e', `inject=${call}:${does}:when=${at}`],
];

type Ran = { readonly code: unknown; readonly said: string };

const runWith = (fault: Fault, home: string, ...args: readonly string[]): Promise<Ran> =>
  runProgram('strace', [...tracing(fault), process.execPath, MAIN, ...args], home);

async function runProgram(
  program: string,
  args: readonly string[],
  home: string,
  { path = process.env['PATH'] ?? '', input = '' } = {},
): Promise<Ran> {
  const child = spawn(program, args, {
    env: {
      ...COMPILE_CACHE,
      ...{ PATH: path, HOME: home, NANOBOT_HOME: home, TZ: 'UTC' },
      // The calls of its one thread are counted in order.
      UV_THREADPOOL_SIZE: '1',
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.on('error', () => undefined);
  if (input === '') child.stdin.end();
  else createReadStream(input).pipe(child.stdin);
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

const starts = (home: Home) =>
  assertUsable(home).then(
    () => existsSync(home.config),
    () => false,
  );

const LONG_MS = 1_800_000;

describe.skipIf(!canTrace)('at each step', () => {
  it(
    'a back-up that ends leaves no half one, and the next one is complete and deletes the old ones',
    async () => {
      const home = homeOf({ NANOBOT_HOME: join(folder, 'home') });
      await cp(MADE, home.root, { recursive: true });
      const to = join(folder, 'place');
      const short: readonly Fault[] = [
        { call: 'unlink', at: 4, does: KILL },
        { call: 'fsync', at: 5, does: FULL },
      ];
      await atEachStep(short, async (fault) => {
        const place = await openPlace(to, OPTIONS);
        await writeFile(join(home.workspace, 'list.md'), randomBytes(3_000_000));
        await createBackup({ home, place, signal });
        await writeFile(join(home.workspace, 'list.md'), randomBytes(3_000_000));
        const ran = await runWith(fault, home.root, 'backup', 'create', '--to', to, '--keep', '1d');
        await expectAllWhole(place);
        const made = await createBackup({ home, place, signal });
        expect((await snapshots(place)).map(({ id }) => id)).toContain(made.id);
        const { id = '' } = (await readInstance(home)) ?? {};
        expect(await prune(place, id, { days: 0, weeks: 0, months: 0 }, signal)).toBeDefined();
        expect((await snapshots(place)).map((one) => one.id)).toEqual([made.id]);
        await expectAllWhole(place);
        expect((await readdir(home.backups)).filter((name) => /^state-/.test(name))).toEqual([]);
        await rm(to, { recursive: true });
        return ran;
      });
    },
    LONG_MS,
  );

  it(
    'a restore that ends is refused by the gateway; the same command goes on, with a newer back-up anew',
    async () => {
      const source = homeOf({ NANOBOT_HOME: join(folder, 'home') });
      await cp(MADE, source.root, { recursive: true });
      const place = await openPlace(join(folder, 'place'), OPTIONS);
      await createBackup({ home: source, place, signal });
      const short: readonly Fault[] = [
        { call: 'rename', at: 4, does: KILL },
        { call: 'fsync', at: 6, does: FULL },
      ];
      await atEachStep(short, async (fault) => {
        const into = homeOf({ NANOBOT_HOME: join(folder, 'into') });
        const words = ['--from', place.name, '--into', into.root, '--takes-over', '--force'];
        const ran = await runWith(fault, source.root, 'backup', 'restore', ...words);
        if (existsSync(into.restoring))
          await expect(assertUsable(into)).rejects.toThrow('interrupted');
        else if (existsSync(into.config))
          expect(await filesOf(into.root)).toEqual(await filesOf(MADE));
        if (fault.at % 2 === 0) {
          await writeFile(join(source.workspace, 'list.md'), `after ${fault.call} ${fault.at}`);
          await createBackup({ home: source, place, signal });
        }
        await restoreBackup({ place, unlock, signal, into, force: true, takesOver: true });
        await assertUsable(into);
        expect(await filesOf(into.root)).toEqual(await filesOf(MADE));
        const list = (home: Home) => readFile(join(home.workspace, 'list.md'), 'utf8');
        expect(await list(into)).toBe(await list(source));
        await rm(into.root, { recursive: true });
        return ran;
      });
    },
    LONG_MS,
  );

  it(
    'a move that ends leaves at most one home that starts, and is repeated by the same command',
    async () => {
      const short: readonly Fault[] = [
        { call: 'fsync', at: 14, does: KILL },
        { call: 'fsync', at: 5, does: FULL },
      ];
      await atEachStep(short, async (fault) => {
        const home = homeOf({ NANOBOT_HOME: join(folder, 'home') });
        await cp(MADE, home.root, { recursive: true });
        const file = join(folder, 'home.tar');
        const ran = await runWith(fault, home.root, 'move', '--to', file, '--yes');
        expect((await starts(home)) && existsSync(file)).toBe(false);
        if (ran.code !== 0) {
          const again = await runNanobot(['move', '--to', file, '--yes'], { home: home.root });
          expect(again.code, again.stderr).toBe(0);
        }
        await expect(assertUsable(home)).rejects.toThrow('moved');
        await using place = await readPlace(file, OPTIONS);
        await expectAllWhole(place);
        await rm(home.root, { recursive: true });
        await rm(file);
        return ran;
      });
    },
    LONG_MS,
  );

  it(
    'a move by ssh that ends here or there leaves at most one home that starts, and is repeated',
    async () => {
      const here = homeOf({ NANOBOT_HOME: join(folder, 'here') });
      const there = homeOf({ NANOBOT_HOME: join(folder, 'there') });
      const path = `${folder}:${process.env['PATH']}`;
      const ssh = '#!/bin/sh\nshift\nunset NANOBOT_HOME\nexec sh -c "$*"\n';
      await writeFile(join(folder, 'ssh'), ssh, { mode: 0o755 });
      // Its gateway does not start: what counts is which home would.
      const other = (prefix: string) =>
        `#!/bin/sh\ncase "$1" in backup) exec ${prefix} ${process.execPath} ${MAIN} "$@";; gateway) ;; status) echo '"gateway": {';; esac\n`;
      const command = join(folder, 'nanobot-there');
      const words = ['move', '--to', `ann@server:${there.root}`, '--command', command, '--yes'];
      const move = () => runProgram(process.execPath, [MAIN, ...words], here.root, { path });
      for (const side of ['here', 'there']) {
        const short: readonly Fault[] = [
          { call: 'rename', at: side === 'here' ? 2 : 6, does: KILL },
          { call: 'fsync', at: 4, does: side === 'here' ? FULL : KILL },
        ];
        await atEachStep(short, async (fault) => {
          await cp(MADE, here.root, { recursive: true });
          const faulty = ['strace', ...tracing(fault)];
          await writeFile(command, other(side === 'there' ? faulty.join(' ') : ''), {
            mode: 0o755,
          });
          const ran =
            side === 'there'
              ? await move()
              : await runProgram(
                  faulty[0] ?? '',
                  [...faulty.slice(1), process.execPath, MAIN, ...words],
                  here.root,
                  { path },
                );
          expect([await starts(here), await starts(there)]).not.toEqual([true, true]);
          if (ran.code !== 0) {
            await writeFile(command, other(''));
            const again = await move();
            expect(again.code, again.said).toBe(0);
          }
          expect([await starts(here), await starts(there)]).toEqual([false, true]);
          expect(await filesOf(there.root)).toEqual(await filesOf(MADE));
          await rm(here.root, { recursive: true });
          await rm(there.root, { recursive: true });
          return ran;
        });
      }
    },
    LONG_MS,
  );
});

// A disk that is really full, of so many kB and only in the namespace of the command.

/** What is on the disk at the end is in the folder afterwards. */
async function onSmallDisk(
  kilobytes: number,
  disk: string,
  home: string,
  args: readonly string[],
  input = '',
): Promise<Ran> {
  await mkdir(disk, { recursive: true });
  const script =
    `mount -t tmpfs -o size=${kilobytes}k tmpfs "$0" || exit 99; ` +
    `"$@"; code=$?; cp -a "$0" "$0.after"; exit $code`;
  const program = ['-rm', 'sh', '-c', script, disk, process.execPath, MAIN, ...args];
  const ran = await runProgram('unshare', program, home, { input });
  await rm(disk, { recursive: true });
  await rename(`${disk}.after`, disk).catch(() => mkdir(disk));
  return ran;
}

const SIZES_KB = isFullCampaign() ? [4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512] : [64];

it(
  'a full disk: what was there stays, the disk is named, and the same command does it where there is room',
  async ({ skip }) => {
    const disk = join(folder, 'disk');
    if ((await onSmallDisk(64, disk, folder, ['--version'])).code !== 0) skip('no disk of its own');
    const source = homeOf({ NANOBOT_HOME: join(folder, 'home') });
    const stream = join(folder, 'stream.tar');
    await cp(MADE, source.root, { recursive: true });
    await writeFile(join(source.workspace, 'list.md'), randomBytes(500_000));
    {
      await using place = await openPlace(stream, OPTIONS);
      await createBackup({ home: source, place, signal });
    }
    for (const size of SIZES_KB) {
      const small = (args: readonly string[], input = '') =>
        onSmallDisk(size, disk, source.root, args, input);
      const place = await openPlace(join(disk, 'place'), OPTIONS);
      const made = await small(['backup', 'create', '--to', place.name]);
      expect(made, `${size} kB`).toMatchObject({
        code: 1,
        said: expect.stringContaining(place.name),
      });
      expect(made.said).toContain('is full');
      expect(await snapshots(place)).toEqual([]);
      await createBackup({ home: source, place, signal });
      await expectAllWhole(place);

      const file = join(disk, 'home.tar');
      await rm(place.name, { recursive: true });
      const moved = await small(['move', '--to', file, '--yes']);
      expect(moved.said).toContain(`the disk of ${file} is full`);
      expect(await readdir(disk)).toEqual([]);
      expect(await starts(source)).toBe(true);

      const into = homeOf({ NANOBOT_HOME: join(disk, 'into') });
      const restored = await small(['backup', 'restore', '-', '--into', into.root], stream);
      expect(restored.said).toContain(`the disk of ${into.root} is full`);
      expect(await readdir(into.root)).toEqual([]);
      await using from = await readPlace(stream, OPTIONS);
      await restoreBackup({ place: from, unlock, signal, into });
      expect(await filesOf(into.root)).toEqual(await filesOf(MADE));
      await rm(disk, { recursive: true });
    }
  },
  LONG_MS,
);

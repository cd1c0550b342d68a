// Back-ups that the gateway makes by itself while days pass: how often, which ones stay, what owners hear
// where they fail, and what status and metrics say of their age.

import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, expect, it } from 'vitest';
import { readRecord } from '../../src/features/backup/index.ts';
import { openPlace } from '../../src/features/backup/places.ts';
import { snapshots } from '../../src/features/backup/repository.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { runNanobot } from '../cli/run-nanobot.ts';
import { makeTestHome } from '../support/gateway-process.ts';
import { laterBy } from '../support/shifted-clock.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const NO_S3 = { endpoint: '', region: '', accessKeyId: '', secretAccessKey: '' };

/** Alerts of the owners, who are at the web page here. */
const TOLD = "SELECT body FROM outbound WHERE body LIKE '%The back-up failed%'";

const folder = await mkdtemp(join(tmpdir(), 'nanobot-schedule-'));
const to = join(folder, 'place');
const testHome = await makeTestHome({ gateway: { port: 0 } });
const home = homeOf({ NANOBOT_HOME: testHome.path });
const gateway = await testHome.start(laterBy(0));
afterAll(async () => {
  await testHome[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const record = () => readRecord(home);
const made = async () => (await record()).made?.id;
const stored = async () => {
  const place = await openPlace(to, { env: {}, s3: NO_S3, proxy: '' });
  return (await snapshots(place)).map(({ id }) => id);
};
function told(): readonly string[] {
  using database = new DatabaseSync(home.state, { readOnly: true });
  return database
    .prepare(TOLD)
    .all()
    .map(({ body }) => String(body));
}
const command = async (...args: readonly string[]) => {
  const passed = String(skippedMs);
  const env = { ...laterBy(0), NANOBOT_TEST_CLOCK_SHIFT_MS: passed };
  return runNanobot(args, { home: home.root, env });
};
async function gauge(name: string): Promise<number> {
  const { address, credentials: headers } = gateway;
  const page = await (await fetch(`${address}/metrics`, { headers })).text();
  return Number(new RegExp(`^nanobot_backup_${name} (\\S+)$`, 'm').exec(page)?.[1]);
}
const age = () => gauge('age_seconds');

let skippedMs = 0;
async function pass(ms: number): Promise<void> {
  skippedMs += ms;
  await gateway.skip(ms);
}
/** Each look comes a minute after the end of the one before. */
async function passUntil(isSo: () => Promise<unknown>): Promise<void> {
  const looked = async () => {
    if (await isSo()) return true;
    await pass(MINUTE_MS);
    return false;
  };
  await expect.poll(looked, { interval: 200, timeout: 120_000 }).toBe(true);
}
const nextAfter = (id: string | undefined) => passUntil(async () => (await made()) !== id);

it('makes one a day and keeps those of two days; a failure is told once, and status and metrics show the age', async () => {
  const first = await command('backup', 'create', '--to', to, '--every', 'day', '--keep', '2d');
  expect(first.code, first.stderr).toBe(0);
  expect(first.stdout).toContain('The gateway makes the next ones by itself, every day.');
  const ids = [await made()];
  await expect.poll(() => gauge('every_seconds')).toBe(DAY_MS / 1000);

  // Not before its time.
  await pass(DAY_MS - HOUR_MS);
  await pass(2 * MINUTE_MS);
  expect(await age()).toBeGreaterThan(22 * 3600);
  expect(await made()).toBe(ids[0]);
  for (let day = 0; day < 3; day += 1) {
    await pass(DAY_MS);
    await nextAfter(ids.at(-1));
    ids.push(await made());
  }
  await expect.poll(stored).toEqual(ids.slice(-2));
  // Minutes pass while the process makes it.
  expect(await age()).toBeLessThan(12 * 3600);
  expect((await command('status')).stdout).toMatch(/Back-up.* ago, to .*not verified by a start/);

  await rename(to, `${to}-away`);
  await writeFile(to, 'no folder');
  await pass(DAY_MS);
  await passUntil(async () => (await record()).failing !== undefined);
  await expect.poll(told).toHaveLength(1);
  const since = (await record()).failing?.last ?? 0;
  await pass(HOUR_MS);
  await passUntil(async () => ((await record()).failing?.last ?? 0) > since);
  expect(told()).toHaveLength(1);
  expect(told()[0]).toContain(`${to} cannot be written: ENOTDIR`);
  expect(await age()).toBeGreaterThan(24 * 3600);
  expect((await command('status')).stdout).toMatch(/failing for .*: /);
  expect((await command('doctor')).stdout).toMatch(/backup.*failing for/i);

  await rm(to);
  await rename(`${to}-away`, to);
  await pass(HOUR_MS);
  await nextAfter(ids.at(-1));
  expect((await record()).failing).toBeUndefined();
  expect((await stored()).at(-1)).toBe(await made());
  expect(told()).toHaveLength(1);
});

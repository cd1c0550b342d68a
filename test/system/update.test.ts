// Updates of an installed package, from a registry to the version that starts: killed at every step, with a full disk, to
// versions that do not start or do not stay healthy, and from the package of commit 3e7dcfc.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { installationIn } from '../../src/features/update/installation.ts';
import { outcomeText, type UpdateRun } from '../../src/features/update/record.ts';
import { type GatewayService, update } from '../../src/features/update/update.ts';
import { findHomeHolder } from '../../src/kernel/bus/store/home-lock.ts';
import { storeMark } from '../../src/kernel/bus/store/store-copy.ts';
import { type Home, homeOf, readMadeToken } from '../../src/kernel/config/files/home.ts';
import { findRunningGateway } from '../../src/kernel/home-state.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { isFullCampaign } from '../support/campaign.ts';
import { type NpmRegistry, startNpmRegistry } from '../support/npm-registry.ts';

const ROOT = join(import.meta.dirname, '../..');
/** @see test/support/packed.ts */
const PACKAGE = process.env['NANOBOT_TEST_PACKAGE'] ?? '';
const BREAK = join(ROOT, 'test/support/break-at-step.mjs');
const [OLD, FROM, TO, DEAF, SICK] = ['0.1.1', '0.2.0', '0.3.0', '0.4.0', '0.5.0'] as const;
/** Some time after it has begun to answer. */
const DIES = `const { existsSync } = process.getBuiltinModule('node:fs');
  setInterval(() => {
    if (existsSync(process.env.NANOBOT_HOME + '/gateway.json')) setTimeout(() => process.exit(9), 900);
  }, 50);`;
const execute = promisify(execFile);

let registry: NpmRegistry;
let folder: string;
/** An installation of FROM, and a home in which it has answered once. */
let original: { readonly prefix: string; readonly home: string };

type Ran = { readonly code: number; readonly said: string };

/** A copy of the installation and of the home. */
async function installed() {
  const at = await mkdtemp(join(folder, 'case-'));
  const prefix = join(at, 'prefix');
  await cp(original.prefix, prefix, { recursive: true, verbatimSymlinks: true });
  await execute('ln', ['-sfn', join(prefix, 'versions', FROM), join(prefix, 'current')]);
  await cp(original.home, join(at, 'home'), { recursive: true });
  return { prefix, home: homeOf({ NANOBOT_HOME: join(at, 'home') }) };
}

type Installed = Awaited<ReturnType<typeof installed>>;

const environment = (home: Home): Record<string, string> => ({
  ...{ PATH: process.env['PATH'] ?? '', HOME: folder, NANOBOT_HOME: home.root },
  ...{ NANOBOT_REGISTRY: registry.url, NANOBOT__gateway__port: '0', TZ: 'UTC' },
});

const programOf = (prefix: string) =>
  join(prefix, 'current/node_modules', registry.name, 'bin/nanobot.js');

/** The command as it is installed there now. */
function nanobot({ prefix, home }: Installed, args: readonly string[], breakAt = ''): Promise<Ran> {
  const broken = breakAt === '' ? [] : ['--import', BREAK];
  const env = { ...environment(home), BREAK_AT: breakAt };
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [...broken, programOf(prefix), ...args],
      { env },
      (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), said: stdout + stderr }),
    );
  });
}

const versionOf = async ({ prefix }: Installed) =>
  basename(await realpath(join(prefix, 'current')));
const recorded = async ({ home }: Installed): Promise<UpdateRun> =>
  JSON.parse(await readFile(home.update, 'utf8'));

/** Starts and stops the gateway of the version that is installed there. */
function gatewayService({ prefix, home }: Installed): GatewayService & AsyncDisposable {
  let stop: (() => Promise<void>) | undefined;
  return {
    name: 'a process of this test',
    async start() {
      if (stop !== undefined) return;
      const child = spawn(process.execPath, [programOf(prefix), 'gateway'], {
        ...{ env: environment(home), stdio: 'ignore' },
      });
      const ended = new Promise<void>((done) => child.once('exit', () => done()));
      stop = async () => {
        child.kill('SIGTERM');
        await ended;
      };
    },
    async stop() {
      await stop?.();
      stop = undefined;
    },
    async [Symbol.asyncDispose]() {
      await stop?.();
    },
  };
}

/** Starts the gateway that is installed there, again after each failure, as a service manager does. */
function restarted({ prefix, home }: Installed): AsyncDisposable {
  let isWanted = true;
  let child: ChildProcess;
  const ended = (async () => {
    while (isWanted) {
      child = spawn(process.execPath, [programOf(prefix), 'gateway'], {
        ...{ env: environment(home), stdio: 'ignore' },
      });
      const [code] = await once(child, 'exit');
      if (code === 0) return;
    }
  })();
  return {
    async [Symbol.asyncDispose]() {
      isWanted = false;
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** Updates under a service; the watch takes a second. */
async function updateWatched(
  at: Installed,
  service: GatewayService,
  to: string,
  from: string = FROM,
) {
  const found = installationIn(at.prefix);
  if (found.kind === 'other') throw new Error(found.remedy);
  const { installation } = found;
  const token = await readMadeToken(at.home);
  const common = {
    clock: systemClock,
    signal: AbortSignal.timeout(120_000),
    tell: () => undefined,
  };
  return update(
    {
      ...{ home: at.home, env: environment(at.home), installation, service, token, watchMs: 1000 },
      ...common,
    },
    { from, to },
  );
}

const runs = ({ home }: Installed) =>
  expect.poll(() => findRunningGateway(home).then((one) => one?.address)).toBeDefined();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nanobot-update-'));
  const { name } = JSON.parse(await readFile(join(PACKAGE, 'package.json'), 'utf8'));
  // What the bundle leaves outside is found here, above every installation.
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  registry = await startNpmRegistry(name, folder);
  const main = 'dist/main.js';
  const unless = (condition: string, then: string) => async (at: string) => {
    const text = await readFile(join(at, main), 'utf8');
    await writeFile(join(at, main), `if (${condition}) { ${then} }\n${text}`);
  };
  await registry.publish(PACKAGE, FROM);
  await registry.publish(PACKAGE, DEAF, unless(`process.argv[2] === 'gateway'`, 'process.exit(9)'));
  const isReal = `process.argv[2] === 'gateway' && !process.argv.includes('--trial')`;
  await registry.publish(PACKAGE, SICK, unless(isReal, DIES));
  await registry.publish(PACKAGE, TO);
  const prefix = await registry.installed(FROM);
  const home = join(folder, 'home');
  original = { prefix, home };
  await nanobot({ prefix, home: homeOf({ NANOBOT_HOME: home }) }, ['agent', '-m', 'hello']);
});

afterAll(async () => {
  await registry[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

it('asks for the newest version, and only for that', async () => {
  const at = await installed();
  const before = registry.asked.length;
  const { said } = await nanobot(at, ['update', '--check']);
  expect(said).toContain(`${TO} is available; this is ${FROM}`);
  expect(said).toContain(`What changed: ${registry.url}changes`);
  expect(registry.asked.slice(before)).toEqual([`/${registry.name}/latest`]);
});

it('updates what stands there, once', async () => {
  const at = await installed();
  const { code, said } = await nanobot(at, ['update']);
  expect([code, said]).toEqual([0, expect.stringContaining(`updated from ${FROM} to ${TO}`)]);
  expect((await nanobot(at, ['--version'])).said.trim()).toBe(TO);
  expect(await recorded(at)).toMatchObject({ step: 'done', from: FROM, to: TO });
  expect((await nanobot(at, ['update'])).said).toContain('There is nothing to do');
});

const STEPS = ['preparing', 'stopping', 'switched', 'watching', 'done'] as const;
const KILLS = STEPS.flatMap((step) => [`kill before ${step}`, `kill after ${step}`]);
const SHORT_KILLS = ['kill before switched'];

describe('kill -9', () => {
  it.each(isFullCampaign() ? KILLS : SHORT_KILLS)(
    '%s: the next update finishes it',
    async (how) => {
      const at = await installed();
      const killed = await nanobot(at, ['update'], how);
      expect(killed.code).not.toBe(0);
      // What stands there always starts.
      expect([FROM, TO]).toContain((await nanobot(at, ['--version'])).said.trim());
      const { code } = await nanobot(at, ['update']);
      expect([code, await versionOf(at), (await recorded(at)).step]).toEqual([0, TO, 'done']);
      expect(existsSync(at.home.beforeUpdate)).toBe(false);
    },
  );
});

describe('kill -9 while it goes back', () => {
  const kills = ['kill after rolling-back', 'kill before rolling-back', 'kill before rolled-back'];
  it.each(isFullCampaign() ? kills : kills.slice(0, 1))(
    '%s: doctor reports it, and the next update ends it',
    async (how) => {
      const at = await installed();
      await nanobot(at, ['update'], `full at switched, ${how}`);
      expect((await nanobot(at, ['doctor'])).said).toContain(`update to ${TO} was interrupted`);
      const { code } = await nanobot(at, ['update']);
      // Where the way back was not recorded, the way on is taken.
      const [wanted, step] =
        how === 'kill before rolling-back' ? [TO, 'done'] : [FROM, 'rolled-back'];
      expect([await versionOf(at), (await recorded(at)).step]).toEqual([wanted, step]);
      expect(code).toBe(wanted === TO ? 0 : 1);
      expect((await nanobot(at, ['doctor'])).said).not.toContain('was interrupted');
    },
  );
});

describe('an update whose updater was killed while it watched', () => {
  it('goes back by itself from a version that does not stay healthy, and the owner is told the reason', async () => {
    const at = await installed();
    await nanobot(at, ['update', '--to', SICK], 'kill after watching');
    expect((await recorded(at)).step).toBe('watching');
    expect((await nanobot(at, ['doctor'])).said).toContain(`update to ${SICK} was interrupted`);
    await using _service = restarted(at);
    await expect.poll(async () => (await recorded(at)).told).toBe(true);
    const run = await recorded(at);
    expect([run.step, await versionOf(at)]).toEqual(['rolled-back', FROM]);
    expect(outcomeText(run)).toContain('the gateway ended and was started again');
    expect(existsSync(at.home.beforeUpdate)).toBe(false);
    await runs(at);
  });

  it.runIf(isFullCampaign())('is finished by the next one', async () => {
    const at = await installed();
    await nanobot(at, ['update', '--to', SICK], 'kill after watching');
    await using service = gatewayService(at);
    expect((await updateWatched(at, service, SICK)).step).toBe('rolled-back');
    expect(await versionOf(at)).toBe(FROM);
  });

  it('ends when the gateway was healthy for as long as the updater would have watched', async () => {
    const at = await installed();
    await nanobot(at, ['update', '--watch', '1'], 'kill after watching');
    await using _service = restarted(at);
    await expect.poll(async () => (await recorded(at)).step).toBe('done');
    await expect.poll(() => existsSync(at.home.beforeUpdate)).toBe(false);
    expect(await versionOf(at)).toBe(TO);
  });

  it.runIf(isFullCampaign())('goes back where a channel does not run any more', async () => {
    const at = await installed();
    await nanobot(at, ['update', '--watch', '1'], 'kill after watching');
    const channels = ['telegram'];
    await writeFile(at.home.update, JSON.stringify({ ...(await recorded(at)), channels }));
    await using _service = restarted(at);
    await expect.poll(async () => (await recorded(at)).told).toBe(true);
    expect(outcomeText(await recorded(at))).toContain('not running any more: telegram');
    expect(await versionOf(at)).toBe(FROM);
  });
});

it('the gateway asks once a day and says what it knows, but only where that is switched on', async () => {
  const at = await installed();
  const settings = async (check: 'never' | 'daily') =>
    expect((await nanobot(at, ['config', 'set', 'update.check', check])).code).toBe(0);
  const before = registry.asked.length;
  await settings('daily');
  await using service = gatewayService(at);
  await service.start();
  await expect.poll(() => existsSync(at.home.newest)).toBe(true);
  expect(registry.asked.slice(before)).toEqual([`/${registry.name}/latest`]);
  expect((await nanobot(at, ['status'])).said).toContain(`${TO} is available`);
  expect((await nanobot(at, ['doctor'])).said).toContain(`${TO} is available`);
  await service.stop();
  await settings('never');
  await rm(at.home.newest);
  await service.start();
  await runs(at);
  expect((await nanobot(at, ['doctor'])).said).not.toContain('registry was not asked');
  expect((await nanobot(at, ['status'])).said).not.toContain('is available');
  expect(existsSync(at.home.newest)).toBe(false);
  expect(registry.asked.length).toBe(before + 1);
});

it('an installation by npm install --global is updated in its place', async () => {
  const at = await installed();
  const prefix = await mkdtemp(join(folder, 'global-'));
  const options = ['--global', '--prefix', prefix, '--registry', registry.url, '--ignore-scripts'];
  await execute('npm', [
    'install',
    ...options,
    '--no-audit',
    '--no-fund',
    `${registry.name}@${FROM}`,
  ]);
  const command = (...args: string[]) =>
    execute(join(prefix, 'bin/nanobot'), args, { env: environment(at.home) });
  expect((await command('update')).stdout).toContain(`updated from ${FROM} to ${TO}`);
  expect((await command('--version')).stdout.trim()).toBe(TO);
  expect((await command('update', '--to', FROM)).stdout).toContain(`updated from ${TO} to ${FROM}`);
  expect((await command('--version')).stdout.trim()).toBe(FROM);
});

it('a version that does not start on a copy of the home changes nothing', async () => {
  const at = await installed();
  const { code, said } = await nanobot(at, ['update', '--to', DEAF]);
  expect([code, said]).toEqual([
    1,
    expect.stringMatching(/does not start on a copy .* Nothing was changed/s),
  ]);
  expect(await versionOf(at)).toBe(FROM);
});

describe('a full disk', () => {
  const steps = isFullCampaign() ? STEPS.slice(0, 4) : (['switched'] as const);
  it.each(steps)('at %s: the version of before stays', async (step) => {
    const at = await installed();
    const { code, said } = await nanobot(at, ['update'], `full at ${step}`);
    expect([code, said]).toEqual([1, expect.stringMatching(/no space left|the disk .* is full/)]);
    expect(await versionOf(at)).toBe(FROM);
    expect((await nanobot(at, ['agent', '-m', 'what time is it'])).said).toMatch(
      /\d{4}-\d{2}-\d{2}/,
    );
  });
});

it('a version that does not stay healthy is replaced by the one before, a healthy one stays, and the owner is told both', async () => {
  const at = await installed();
  await using service = gatewayService(at);
  await service.start();
  await runs(at);
  const run = await updateWatched(at, service, SICK);
  expect(run.step).toBe('rolled-back');
  expect(outcomeText(run)).toMatch(
    new RegExp(`update to ${SICK} was rolled back: .* Version ${FROM} runs again`),
  );
  expect(await versionOf(at)).toBe(FROM);
  await runs(at);
  await expect.poll(async () => (await recorded(at)).told).toBe(true);
  const better = await updateWatched(at, service, TO);
  expect([better.step, await versionOf(at)]).toEqual(['done', TO]);
  await expect.poll(async () => (await recorded(at)).told).toBe(true);
});

const hasHistory = await execute('git', ['cat-file', '-e', '3e7dcfc^{commit}'], { cwd: ROOT }).then(
  () => true,
  () => false,
);

/** To a version that does not stay healthy: a home in which nobody waits for an answer goes back with the program. */
async function goesBackAlone(at: Installed, prefix: string) {
  const quiet = { prefix, home: homeOf({ NANOBOT_HOME: `${at.home.root}-quiet` }) };
  await nanobot(quiet, ['agent', '-m', 'hello']);
  expect(storeMark(quiet.home.state).schema).toBe(4);
  await using failing = gatewayService(quiet);
  const run = await updateWatched(quiet, failing, SICK, OLD);
  expect([run.step, await versionOf(quiet)]).toEqual(['rolled-back', OLD]);
  await failing.stop();
  expect(storeMark(quiet.home.state).schema).toBe(4);
  expect((await nanobot(quiet, ['status'])).code).toBe(0);
}

describe.skipIf(!hasHistory)('from the package of commit 3e7dcfc', () => {
  it('its home and its program become those of today, and the way back is named', async () => {
    const at = await installed();
    const old = join(folder, 'old');
    await mkdir(old);
    await execute('sh', ['-c', `git archive 3e7dcfc | tar -x -C ${old}`], { cwd: ROOT });
    await execute(process.execPath, [join(ROOT, 'test/support/strip-types.mjs'), old]);
    await registry.publish(old, OLD);
    registry.latest = TO;
    const prefix = await registry.installed(OLD);
    await rm(at.home.root, { recursive: true });
    await cp(join(ROOT, 'test/homes/v1/home'), at.home.root, { recursive: true });
    const before = { ...at, prefix };
    expect(storeMark(at.home.state).schema).toBe(4);
    if (isFullCampaign()) await goesBackAlone(at, prefix);
    const args = ['update', '--installation', prefix, '--to', TO];
    const { code, said } = await nanobot(at, args);
    expect([code, said]).toEqual([0, expect.stringContaining(`updated from ${OLD} to ${TO}`)]);
    expect(await versionOf(before)).toBe(TO);
    await using service = gatewayService(before);
    await service.start();
    await runs(before);
    await service.stop();
    expect(storeMark(at.home.state).schema).toBeGreaterThan(4);
    const oldProgram = join(
      prefix,
      'versions',
      OLD,
      'node_modules',
      registry.name,
      'bin/nanobot.js',
    );
    const refused = await execute(process.execPath, [oldProgram, 'status'], {
      env: environment(at.home),
    }).catch((error: { readonly stderr: string }) => error);
    expect(refused.stderr).toContain('newer nanobot');
    const back = await nanobot(before, ['update', '--to', OLD]);
    expect([back.code, back.said]).toEqual([
      1,
      expect.stringMatching(/Nothing was changed\. .*backup restore \S+ --from \S+ --force/s),
    ]);
    expect(await versionOf(before)).toBe(TO);
    expect(await findHomeHolder(at.home.lock)).toBeUndefined();
  });
});

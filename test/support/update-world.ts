// Installations that are updated: versions of the packed program in a registry, and copies of a folder with some of them
// installed beside each other, each copy with a home of its own.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect } from 'vitest';
import { installationIn } from '../../src/features/update/installation.ts';
import type { UpdateRun } from '../../src/features/update/record.ts';
import { type GatewayService, update } from '../../src/features/update/update.ts';
import { type Home, homeOf, readMadeToken } from '../../src/kernel/config/files/home.ts';
import { findRunningGateway } from '../../src/kernel/home-state.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { type NpmRegistry, startNpmRegistry } from './npm-registry.ts';

const ROOT = join(import.meta.dirname, '../..');
/** @see test/support/packed.ts */
const PACKAGE = process.env['NANOBOT_TEST_PACKAGE'] ?? '';
const BREAK = join(import.meta.dirname, 'break-at-step.mjs');
/** FROM is installed, TO is the newest; DEAF does not start, SICK ends some time after it has begun to answer. */
export const [FROM, TO, DEAF, SICK] = ['0.2.0', '0.3.0', '0.4.0', '0.5.0'] as const;
const DIES = `const { existsSync } = process.getBuiltinModule('node:fs');
  setInterval(() => {
    if (existsSync(process.env.NANOBOT_HOME + '/gateway.json')) setTimeout(() => process.exit(9), 900);
  }, 50);`;
const IS_REAL = `process.argv[2] === 'gateway' && !process.argv.includes('--trial')`;

type Ran = { readonly code: number; readonly said: string };
export type Installed = { readonly prefix: string; readonly home: Home };

export interface UpdateWorld extends AsyncDisposable {
  readonly registry: NpmRegistry;
  readonly folder: string;
  readonly environment: (home: Home) => Record<string, string>;
  /** A home in which it has answered once, and FROM with others beside it: the copies of before are gone. */
  installed(versions?: readonly string[]): Promise<Installed>;
  /** The command as it is installed there now. @param breakAt see break-at-step.mjs */
  nanobot(
    at: Installed,
    args: readonly string[],
    breakAt?: string,
    more?: Readonly<Record<string, string>>,
  ): Promise<Ran>;
  program(prefix: string): string;
  /** Starts and stops the gateway of the version that is installed there. */
  gatewayService(at: Installed): GatewayService & AsyncDisposable;
  /** Starts the gateway that is installed there, again after each failure, as a service manager does. */
  restarted(at: Installed): AsyncDisposable;
  /** Updates under a service; a version that dies does so long before the watch ends. */
  updateWatched(
    at: Installed,
    service: GatewayService,
    to: string,
    from?: string,
  ): Promise<UpdateRun>;
}

export const versionOf = async ({ prefix }: Installed) =>
  basename(await realpath(join(prefix, 'current')));

export const recorded = async ({ home }: Installed): Promise<UpdateRun> =>
  JSON.parse(await readFile(home.update, 'utf8'));

export const runs = ({ home }: Installed) =>
  expect.poll(() => findRunningGateway(home).then((one) => one?.address)).toBeDefined();

async function publishAll(registry: NpmRegistry): Promise<void> {
  const unless = (condition: string, then: string) => async (at: string) => {
    const main = join(at, 'dist/main.js');
    await writeFile(main, `if (${condition}) { ${then} }\n${await readFile(main, 'utf8')}`);
  };
  await registry.publish(PACKAGE, FROM);
  await registry.publish(PACKAGE, DEAF, unless(`process.argv[2] === 'gateway'`, 'process.exit(9)'));
  await registry.publish(PACKAGE, SICK, unless(IS_REAL, DIES));
  await registry.publish(PACKAGE, TO);
}

export async function makeUpdateWorld(): Promise<UpdateWorld> {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-update-'));
  const { name } = JSON.parse(await readFile(join(PACKAGE, 'package.json'), 'utf8'));
  // What the bundle leaves outside is found here, above every installation.
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const registry = await startNpmRegistry(name, folder);
  await publishAll(registry);

  // Always the same path, so that what was compiled is found again.
  const prefix = join(folder, 'prefix');
  const first = join(folder, 'home');
  const program = (at: string) => join(at, 'current/node_modules', name, 'bin/nanobot.js');
  const environment = (home: Home): Record<string, string> => ({
    ...{ PATH: process.env['PATH'] ?? '', HOME: folder, NANOBOT_HOME: home.root },
    ...{ NANOBOT_REGISTRY: registry.url, NANOBOT__gateway__port: '0', TZ: 'UTC' },
  });
  const gateway = (at: Installed) =>
    spawn(process.execPath, [program(at.prefix), 'gateway'], {
      ...{ env: environment(at.home), stdio: 'ignore' },
    });

  const world: UpdateWorld = {
    registry,
    folder,
    environment,
    program,
    async installed(versions = [FROM, TO, DEAF, SICK]) {
      await rm(prefix, { recursive: true, force: true });
      await registry.installed(prefix, versions);
      const root = join(await mkdtemp(join(folder, 'case-')), 'home');
      await cp(first, root, { recursive: true });
      return { prefix, home: homeOf({ NANOBOT_HOME: root }) };
    },
    nanobot(at, args, breakAt = '', more = {}) {
      const broken = breakAt === '' ? [] : ['--import', BREAK];
      const env = { ...environment(at.home), ...more, BREAK_AT: breakAt };
      return new Promise((resolve) => {
        execFile(
          process.execPath,
          [...broken, program(at.prefix), ...args],
          { env },
          (error, stdout, stderr) =>
            resolve({ code: error === null ? 0 : Number(error.code ?? -1), said: stdout + stderr }),
        );
      });
    },
    gatewayService(at) {
      let stop: (() => Promise<void>) | undefined;
      return {
        name: 'a process of this test',
        async start() {
          if (stop !== undefined) return;
          const child = gateway(at);
          const ended = once(child, 'exit');
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
    },
    restarted(at) {
      let isWanted = true;
      let child: ChildProcess;
      const ended = (async () => {
        while (isWanted) {
          child = gateway(at);
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
    },
    async updateWatched({ prefix: at, home }, service, to, from = FROM) {
      const found = installationIn(at);
      if (found.kind === 'other') throw new Error(found.remedy);
      const token = await readMadeToken(home);
      const common = {
        clock: systemClock,
        signal: AbortSignal.timeout(120_000),
        tell: () => undefined,
      };
      const { installation } = found;
      return update(
        {
          ...{ home, env: environment(home), installation, service, token },
          watchMs: 10_000,
          ...common,
        },
        { from, to },
      );
    },
    async [Symbol.asyncDispose]() {
      await registry[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
  await registry.installed(prefix, [FROM]);
  await world.nanobot({ prefix, home: homeOf({ NANOBOT_HOME: first }) }, ['agent', '-m', 'hello']);
  return world;
}

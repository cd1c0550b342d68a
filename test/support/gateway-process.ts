// The real program as a child process in a home of its own, to be talked to from outside and killed
// at any moment.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { ConfigInput } from '../../src/kernel/config/config.ts';
import { writeAtomic } from '../../src/lib/files/files.ts';
import { COMPILE_CACHE } from './compile-cache.ts';
import type { MemoryLimit } from './memory-limit.ts';
import { canSkip, type Skip } from './shifted-clock.ts';

/** The package in system tests, else this checkout. */
const ROOT = process.env['NANOBOT_TEST_PACKAGE'] ?? join(import.meta.dirname, '../..');
const START_TIMEOUT_MS = 60_000;
const SKIP_TIMEOUT_MS = 120_000;

/** A home on disk that outlives the processes started in it. */
export interface TestHome extends AsyncDisposable {
  readonly path: string;
  /** Unknown keys are written too: some tests want a broken file. */
  writeConfig(config: ConfigInput & Readonly<Record<string, unknown>>): Promise<void>;
  /** Every log line of every process so far. */
  logs(): Promise<string>;
  start(
    env?: Readonly<Record<string, string>>,
    memory?: MemoryLimit,
    /** How many files and connections it may have open. */
    descriptors?: number,
    /** Further arguments of `nanobot gateway`. */
    args?: readonly string[],
  ): Promise<GatewayProcess>;
}

export interface GatewayProcess extends AsyncDisposable {
  /** `http://127.0.0.1:port`. */
  readonly address: string;
  /** What it printed for the page: opens it logged in, once. */
  readonly link: string;
  /** Shows to its API that a request comes from this machine's user. */
  readonly credentials: { readonly authorization: string };
  readonly pid: number;
  /** What it printed so far. */
  readonly output: () => string;
  /** Resolves when something like this has been printed. */
  printed(pattern: RegExp): Promise<void>;
  /** Lets so much time pass at a stroke, in a process that lives later (`laterBy`). */
  skip(ms: number): Promise<void>;
  /** Lets time pass, a second at a stroke, until this is so. */
  skipUntil(isSo: () => unknown): Promise<void>;
  kill(): Promise<void>;
  /** Ctrl+C; resolves with the exit code. */
  stop(): Promise<number | null>;
  readonly exited: Promise<number | null>;
}

/** @param root folder of the program */
export async function makeTestHome(config: ConfigInput, root = ROOT): Promise<TestHome> {
  const path = await mkdtemp(join(tmpdir(), 'nanobot-test-'));
  const running = new Set<GatewayProcess>();
  const home: TestHome = {
    path,
    // In one step: the program may look at it at any moment.
    writeConfig: (next) => writeAtomic(join(path, 'config.json'), JSON.stringify(next)),
    async logs() {
      const folder = join(path, 'logs');
      const names = await readdir(folder).catch((): string[] => []);
      const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
      return texts.join('');
    },
    async start(env = {}, memory, descriptors, further) {
      const gateway = await startProcess(path, root, env, memory, descriptors, further);
      running.add(gateway);
      void gateway.exited.then(() => running.delete(gateway));
      return gateway;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...running].map((gateway) => gateway.kill()));
      // Where back-ups of it are made unless a place is named.
      for (const each of [path, `${path}-backups`])
        await rm(each, { recursive: true, force: true, maxRetries: 3 });
    },
  };
  await home.writeConfig(config);
  return home;
}

async function startProcess(
  home: string,
  root: string,
  env: Readonly<Record<string, string>>,
  memory: MemoryLimit | undefined,
  descriptors: number | undefined,
  further: readonly string[] = [],
): Promise<GatewayProcess> {
  const command = [process.execPath, 'test/support/nanobot', 'gateway', ...further] as const;
  const limited = ['sh', '-c', `ulimit -n ${descriptors}; exec "$@"`, 'sh', ...command] as const;
  const [program, ...args] = descriptors === undefined ? command : limited;
  const child = spawn(program, args, {
    cwd: root,
    env: {
      ...COMPILE_CACHE,
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      NANOBOT_HOME: home,
      TZ: 'UTC',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe', ...(canSkip(env) ? (['ipc'] as const) : [])],
  });
  memory?.hold(child.pid ?? 0);
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  let printed = '';
  const readers = new Set<() => void>();
  const link = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => fail('did not start in time'), START_TIMEOUT_MS);
    const fail = (what: string) => reject(new Error(`the gateway ${what}; it said:\n${printed}`));
    const read = (part: Buffer) => {
      printed += part.toString();
      for (const reader of readers) reader();
      const match = /http:\/\/[\w.[\]:-]+:\d+\/#login=[\w-]+/.exec(printed);
      if (match === null || !printed.includes('Ctrl+C')) return;
      clearTimeout(timer);
      resolve(match[0]);
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    void exited.then((code) => {
      clearTimeout(timer);
      fail(`left with code ${code}`);
    });
  });
  const config = JSON.parse(await readFile(join(home, 'config.json'), 'utf8'));
  const folder: string = config.storage?.path ?? home;
  const token = (await readFile(join(folder, 'gateway-token'), 'utf8')).trim();
  const skip = async (ms: number) => {
    const done = once(child, 'message');
    child.send({ skipMs: ms } satisfies Skip);
    await done;
  };
  return {
    address: new URL(link).origin,
    link,
    credentials: { authorization: `Bearer ${token}` },
    pid: child.pid ?? 0,
    output: () => printed,
    exited,
    printed: (pattern) =>
      new Promise((resolve) => {
        const look = () => {
          if (!pattern.test(printed)) return;
          readers.delete(look);
          resolve();
        };
        readers.add(look);
        look();
      }),
    skip,
    async skipUntil(isSo) {
      const skipped = async () => {
        if (await isSo()) return true;
        await skip(1000);
        return false;
      };
      await expect.poll(skipped, { interval: 50, timeout: SKIP_TIMEOUT_MS }).toBe(true);
    },
    kill: () => end(child, 'SIGKILL', exited).then(() => undefined),
    stop: () => end(child, 'SIGINT', exited),
    [Symbol.asyncDispose]: () => end(child, 'SIGKILL', exited).then(() => undefined),
  };
}

async function end(
  child: ChildProcess,
  signal: NodeJS.Signals,
  exited: Promise<number | null>,
): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal);
  return exited;
}

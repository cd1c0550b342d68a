// The measured programs as child processes, with their processor time and memory as the kernel
// counts them.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RUNTIME_ENV } from '../src/cli/service/service.ts';
import type { LlmServer } from '../test/support/llm-server.ts';
import { nowMs, type Peers } from './peers.ts';

export const ROOT = join(import.meta.dirname, '..');
/** The compile cache is kept between runs, as on a machine that restarts the programs. */
const COMPILED = join(ROOT, 'node_modules/.cache/nanobot-bench');
/** Linux counts processor time in these ticks. */
const MS_PER_TICK = 10;
const STOP_TIMEOUT_MS = 20_000;

/** A running program. */
export interface Subject extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly startedAt: number;
  /** User and system time of all threads. */
  cpuMs(): number;
  rssMb(): number;
}

/** A program that can be started, also repeatedly. */
export interface Program extends AsyncDisposable {
  readonly name: string;
  /** @param compiled folder of the compile cache */
  start(compiled?: string): Subject;
}

export function bareBot(peers: Peers): Program {
  return yardstick('bare bot', 'bench/bare-bot.ts', peers, {});
}

/** @param request file with the recorded request whose prompt and tools it sends */
export function agentBot(peers: Peers, request: string): Program {
  return yardstick('agent bot', 'bench/agent-bot.ts', peers, { BENCH_REQUEST: request });
}

function yardstick(
  name: string,
  script: string,
  { telegram, model }: Peers,
  env: Readonly<Record<string, string>>,
): Program {
  return {
    name,
    start: (compiled = COMPILED) =>
      start([script], {
        NODE_COMPILE_CACHE: compiled,
        BENCH_TOKEN: telegram.token,
        BENCH_API_ROOT: telegram.apiRoot,
        BENCH_MODEL_BASE: model.openaiBase,
        ...env,
      }),
    [Symbol.asyncDispose]: async () => undefined,
  };
}

export type NanobotOptions = {
  readonly name: string;
  readonly folder: string;
  /** Absent: the default. */
  readonly quietMs?: number;
  /** Absent: the default. */
  readonly maxConcurrentChats?: number;
  /** Further parts of the configuration. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Further arguments of `nanobot gateway`. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
};

/** nanobot with Telegram, in a home of its own. */
export function nanobot({ telegram, model }: Peers, options: NanobotOptions): Promise<Nanobot> {
  const { token, apiRoot } = telegram;
  const channels = { telegram: { enabled: true, token, apiRoot, allowFrom: ['*'] } };
  return configured({ ...options, model, channels });
}

export type Nanobot = Program & { readonly home: string };

/**
 * nanobot with these channels, in a home of its own, with the flags of its `npm start` and the
 * environment of its service.
 */
export async function configured(
  options: NanobotOptions & {
    readonly model: LlmServer;
    readonly channels: Readonly<Record<string, unknown>>;
  },
): Promise<Nanobot> {
  const { name, folder, quietMs, maxConcurrentChats } = options;
  const home = await mkdtemp(join(tmpdir(), 'nanobot-bench-'));
  const config = {
    version: 1,
    agents: { defaults: { model: 'openai/sim-1', maxConcurrentChats } },
    providers: { openai: { apiKey: 'bench-key', apiBase: options.model.openaiBase } },
    channels: options.channels,
    gateway: { port: 0 },
    coalesce: { quietMs },
    limits: { messages: { perMinute: 0, perDay: 0 } },
    ...options.config,
  };
  await writeFile(join(home, 'config.json'), JSON.stringify(config), { mode: 0o600 });
  const args = [...nodeFlags(folder), 'bin/nanobot.js', 'gateway', ...(options.args ?? [])];
  return {
    name,
    home,
    start: (compiled = COMPILED) =>
      start(
        args,
        { ...RUNTIME_ENV, NANOBOT_HOME: home, XDG_CACHE_HOME: compiled, ...options.env },
        folder,
      ),
    [Symbol.asyncDispose]: () => rm(home, { recursive: true, force: true }),
  };
}

/** The flags with which `npm start` of this checkout runs Node. */
export function nodeFlags(folder: string): readonly string[] {
  const { scripts } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return scripts.start.split(' ').filter((word: string) => word.startsWith('--'));
}

export function start(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd = ROOT,
): Subject {
  const startedAt = nowMs();
  const child = spawn(process.execPath, args, {
    cwd,
    env: { PATH: process.env['PATH'] ?? '', HOME: tmpdir(), ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${args.join(' ')} did not start`);
  return {
    child,
    pid,
    startedAt,
    cpuMs: () => cpuMs(pid),
    rssMb: () => rssMb(pid),
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      const killer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
      await exited;
      clearTimeout(killer);
    },
  };
}

/** @param withEnded with its children that ended */
export function cpuMs(pid: number, withEnded = false): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const counted = withEnded ? fields.slice(11, 15) : fields.slice(11, 13);
  return counted.reduce((sum, ticks) => sum + Number(ticks), 0) * MS_PER_TICK;
}

function rssMb(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024;
}

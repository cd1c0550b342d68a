// A bot under measurement: a child process, its processor time and its memory as the kernel counts
// them.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConfigInput } from '../src/kernel/config/config.ts';
import type { LlmServer } from '../test/support/llm-server.ts';
import type { Peers } from './peers.ts';

const ROOT = join(import.meta.dirname, '..');
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
/** As `npm start` gives them: garbage is collected early, so that memory stays small. */
export const NODE_FLAGS: readonly string[] = scripts.start
  .split(' ')
  .filter((word: string) => word.startsWith('--'));
/** Linux counts processor time in these ticks. */
const MS_PER_TICK = 10;
const STOP_TIMEOUT_MS = 20_000;

export interface Subject extends AsyncDisposable {
  readonly name: string;
  readonly startedAt: number;
  cpuMs(): number;
  rssMb(): number;
}

export async function startBareBot(peers: Peers): Promise<Subject> {
  const child = start(['bench/bare-bot.ts'], {
    BENCH_TOKEN: peers.telegram.token,
    BENCH_API_ROOT: peers.telegram.apiRoot,
    BENCH_MODEL_BASE: peers.model.openaiBase,
  });
  return subjectOf('bare bot', child, async () => undefined);
}

export type GatewayOptions = {
  readonly quietMs: number;
  /** Fills the home before the start. */
  prepare?(home: string): Promise<void>;
};

export async function startGateway(peers: Peers, options: GatewayOptions): Promise<Subject> {
  const { subject } = await startConfigured(`nanobot, window ${options.quietMs} ms`, {
    model: peers.model,
    channels: {
      telegram: {
        enabled: true,
        token: peers.telegram.token,
        apiRoot: peers.telegram.apiRoot,
        allowFrom: ['*'],
      },
    },
    ...options,
  });
  return subject;
}

/** A gateway with these channels, in a home of its own. */
export async function startConfigured(
  name: string,
  options: GatewayOptions & {
    readonly model: LlmServer;
    readonly channels: ConfigInput['channels'];
  },
): Promise<{ readonly subject: Subject; readonly home: string }> {
  const home = await mkdtemp(join(tmpdir(), 'nanobot-bench-'));
  const config: ConfigInput = {
    version: 1,
    agents: { defaults: { model: 'openai/sim-1', maxConcurrentChats: 1000 } },
    providers: { openai: { apiKey: 'bench-key', apiBase: options.model.openaiBase } },
    channels: options.channels,
    gateway: { port: 0 },
    coalesce: { quietMs: options.quietMs },
    limits: { messages: { perMinute: 0, perDay: 0 } },
  };
  await writeFile(join(home, 'config.json'), JSON.stringify(config), { mode: 0o600 });
  await options.prepare?.(home);
  const child = start([...NODE_FLAGS, 'bin/nanobot.js', 'gateway'], {
    NANOBOT_HOME: home,
  });
  const cleanUp = () => rm(home, { recursive: true, force: true });
  return { subject: subjectOf(name, child, cleanUp), home };
}

export function start(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): ChildProcess {
  return spawn(process.execPath, args, {
    cwd: ROOT,
    env: { PATH: process.env['PATH'] ?? '', HOME: tmpdir(), ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
}

export function subjectOf(
  name: string,
  child: ChildProcess,
  cleanUp: () => Promise<void>,
): Subject {
  const { pid } = child;
  if (pid === undefined) throw new Error(`${name} did not start`);
  return {
    name,
    startedAt: performance.timeOrigin + performance.now(),
    cpuMs: () => cpuMs(pid),
    rssMb: () => rssMb(pid),
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) {
        const exited = once(child, 'exit');
        child.kill('SIGTERM');
        const killer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
        await exited;
        clearTimeout(killer);
      }
      await cleanUp();
    },
  };
}

function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}

function rssMb(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024;
}

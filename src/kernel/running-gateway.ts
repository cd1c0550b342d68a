// The gateway that runs in a home, as other processes find it: what it wrote of itself, believed
// only while that very process lives, and only in that very home.

import { readFile, realpath, rm } from 'node:fs/promises';
import { z } from 'zod';
import { writeAtomic } from '../lib/files/files.ts';
import { parseJson } from '../lib/json/json.ts';
import type { Home } from './config/files/home.ts';

const PROBE_TIMEOUT_MS = 3000;

const runtimeSchema = z.object({
  pid: z.int().positive(),
  address: z.string().optional(),
  host: z.string().optional(),
  startedAt: z.number(),
  /** The process beyond its number, which another may have after a restart or in another container. */
  born: z.string().optional(),
  /** A copy of a home is another home. */
  root: z.string().optional(),
});

export type RunningGateway = {
  readonly pid: number;
  /** Base URL of its HTTP server; undefined where it runs without one. */
  readonly address: string | undefined;
  /** What it listens on; undefined where it does not say. */
  readonly host?: string | undefined;
  /** Epoch milliseconds. */
  readonly startedAt: number;
};

/** Tells the processes of this home where the gateway is. Resolves with what takes it back. */
export async function announceGateway(
  home: Home,
  { address, host, startedAt }: Omit<RunningGateway, 'pid'>,
): Promise<() => Promise<void>> {
  const { pid } = process;
  const born = await birthOf(pid);
  const self = { pid, address, host, startedAt, born, root: await realpath(home.root) };
  await writeAtomic(home.runtime, JSON.stringify(self));
  return () => rm(home.runtime, { force: true });
}

export async function findRunningGateway(home: Home): Promise<RunningGateway | undefined> {
  const text = await readFile(home.runtime, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const parsed = runtimeSchema.safeParse(parseJson(text));
  if (!parsed.success || !isAlive(parsed.data.pid)) return undefined;
  const { pid, address, host, startedAt, born, root } = parsed.data;
  if (root !== undefined && root !== (await realpath(home.root))) return undefined;
  if (born !== undefined && born !== ((await birthOf(pid)) ?? born)) return undefined;
  return { pid, address, host, startedAt };
}

/** What a request to the gateway carries; nothing where it asks for no token. */
export function authorization(token: string): Readonly<Record<string, string>> {
  return token === '' ? {} : { authorization: `Bearer ${token}` };
}

/** What the gateway says on a path; undefined where it does not answer in time. */
export async function askGateway(
  gateway: RunningGateway,
  path: string,
  token: string,
): Promise<unknown | undefined> {
  if (gateway.address === undefined) return undefined;
  try {
    const response = await fetch(new URL(path, gateway.address), {
      headers: authorization(token),
      redirect: 'error',
      signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
    });
    return parseJson(await response.text());
  } catch {
    return undefined;
  }
}

/** Sends JSON to a path of it. @throws the error of the connection, or the signal's reason */
export function tellGateway(
  { address, token }: { readonly address: string; readonly token: string },
  path: string,
  body: unknown,
  signal: AbortSignal,
): Promise<Response> {
  return fetch(new URL(path, address), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...authorization(token) },
    body: JSON.stringify(body),
    redirect: 'error',
    signal,
  });
}

/** When the process began, by the kernel; undefined where the kernel does not say. proc(5), field 22 */
async function birthOf(pid: number): Promise<string | undefined> {
  try {
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8');
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    return ticks === undefined ? undefined : `${boot.trim()} ${ticks}`;
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

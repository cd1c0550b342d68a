// The gateway that runs in a home, as other processes find it: what it wrote of itself, believed
// only while its process lives.

import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { parseJson } from '../core/fields.ts';
import type { Home } from './home.ts';

const PROBE_TIMEOUT_MS = 3000;

const runtimeSchema = z.object({
  pid: z.int().positive(),
  address: z.string().optional(),
  startedAt: z.number(),
});

export type RunningGateway = {
  readonly pid: number;
  /** Base URL of its HTTP server; undefined where it runs without one. */
  readonly address: string | undefined;
  /** Epoch milliseconds. */
  readonly startedAt: number;
};

export async function findRunningGateway(home: Home): Promise<RunningGateway | undefined> {
  const text = await readFile(home.runtime, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const parsed = runtimeSchema.safeParse(parseJson(text));
  if (!parsed.success || !isAlive(parsed.data.pid)) return undefined;
  const { pid, address, startedAt } = parsed.data;
  return { pid, address, startedAt };
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
    signal,
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

// Checks what a request shows of itself and limits wrong tokens per client, on loopback too: any page
// in a browser there could guess.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../lib/time/clock.ts';
import { type Access, type Credential, isSessionSecret } from './access.ts';

const MAX_WRONG_TOKENS = 10;
const WRONG_TOKEN_WINDOW_MS = 60_000;
/** After too many. */
const LOCK_MS = 5 * 60_000;
/** Clients remembered; beyond that the one that was seen first is forgotten. */
const MAX_CLIENTS = 10_000;

export type TokenVerdict =
  | { readonly kind: 'right'; readonly credential: Credential }
  | { readonly kind: 'missing' }
  | { readonly kind: 'wrong' }
  /** Once a page's login, or made to look like one: too long to be guessed, so not counted. */
  | { readonly kind: 'ended' }
  /** Too many wrong ones: this one was not even looked at. */
  | { readonly kind: 'limited'; readonly retryAfterMs: number };

export interface TokenGuard {
  check(authorization: string | undefined, address: string | undefined): Promise<TokenVerdict>;
}

type Window = { readonly endsAt: number; readonly wrong: number };

export function createTokenGuard(access: Access, clock: Clock): TokenGuard {
  const windows = new Map<string, Window>();

  function windowOf(client: string): Window {
    const window = windows.get(client);
    const now = clock.monotonic();
    if (window !== undefined && window.endsAt > now) return window;
    return { endsAt: now + WRONG_TOKEN_WINDOW_MS, wrong: 0 };
  }

  function countWrong(client: string) {
    const { wrong: before, endsAt } = windowOf(client);
    const wrong = before + 1;
    const isLocked = wrong >= MAX_WRONG_TOKENS;
    windows.delete(client);
    windows.set(client, { wrong, endsAt: isLocked ? clock.monotonic() + LOCK_MS : endsAt });
    const [oldest] = windows.keys();
    if (windows.size > MAX_CLIENTS && oldest !== undefined) windows.delete(oldest);
  }

  return {
    async check(authorization, address) {
      const offered = /^Bearer ([\x21-\x7e]+)$/i.exec(authorization ?? '')?.[1];
      if (offered === undefined) return { kind: 'missing' };
      // Before the limit: nobody locks a page out by guessing beside it.
      const session = await access.bySession(offered);
      if (session !== undefined) return { kind: 'right', credential: session };
      const client = clientKey(address);
      const { wrong, endsAt } = windowOf(client);
      if (wrong >= MAX_WRONG_TOKENS) {
        return { kind: 'limited', retryAfterMs: endsAt - clock.monotonic() };
      }
      const credential = access.byToken(offered);
      if (credential !== undefined) return { kind: 'right', credential };
      if (isSessionSecret(offered)) return { kind: 'ended' };
      countWrong(client);
      return { kind: 'wrong' };
    },
  };
}

/** One key per client: IPv4 also where it comes mapped into IPv6, else the IPv6 network (/64). */
export function clientKey(address: string | undefined): string {
  const plain = (address ?? '').toLowerCase().replace(/^::ffff:(?=\d+\.)/, '');
  if (!plain.includes(':')) return plain;
  const [head = '', tail] = plain.split('::');
  const groups = head.split(':').filter((group) => group !== '');
  const rest = tail === undefined ? [] : tail.split(':').filter((group) => group !== '');
  const zeros = Array.from({ length: 8 - groups.length - rest.length }, () => '0');
  return [...groups, ...(tail === undefined ? [] : zeros), ...rest].slice(0, 4).join(':');
}

// Connections over which nobody has shown who they are hold no more than a few places, per client and
// in all: the one that has been quiet longest goes. One that waits for an answer goes last (case H07).

/** More than the six that a browser opens to one host. */
export const MAX_UNPROVEN_PER_CLIENT = 8;
const MAX_UNPROVEN = 64;

type Connection = { readonly client: string; requests: number };

export interface UnprovenConnections {
  /** A right token or login came over it: it no longer counts. */
  proven(socket: Socket): void;
}

export function limitUnproven(server: Server): UnprovenConnections {
  // In the order in which they were heard of last.
  const open = new Map<Socket, Connection>();

  function evict(client: string) {
    const all = [...open];
    const ofClient = all.filter(([, connection]) => connection.client === client);
    if (ofClient.length > MAX_UNPROVEN_PER_CLIENT) quietest(ofClient)?.destroy();
    else if (all.length > MAX_UNPROVEN) quietest(all)?.destroy();
  }

  function heard(socket: Socket, change: number) {
    const connection = open.get(socket);
    if (connection === undefined) return;
    connection.requests += change;
    open.delete(socket);
    open.set(socket, connection);
  }

  server.on('connection', (socket) => {
    const client = clientKey(socket.remoteAddress);
    open.set(socket, { client, requests: 0 });
    socket.once('close', () => open.delete(socket));
    evict(client);
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    heard(socket, 1);
    response.once('close', () => heard(socket, -1));
  });
  return { proven: (socket) => open.delete(socket) };
}

function quietest(connections: readonly [Socket, Connection][]): Socket | undefined {
  const quiet = connections.find(([, { requests }]) => requests === 0);
  return (quiet ?? connections[0])?.[0];
}

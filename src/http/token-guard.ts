// Checks what a request shows of itself and limits wrong tokens per client, on loopback too: any page
// in a browser there could guess.

import type { Clock } from '../lib/clock.ts';
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

// One-time codes that make their first sender the owner of a channel: kept as hashes, short-lived,
// few at a time, worthless after a few wrong guesses.

import { createHash, timingSafeEqual } from 'node:crypto';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { jsonRow, listShape, number, rowShape, text } from '../../lib/json/json.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Stranger, Strangers } from './strangers.ts';

/** No letters or digits that look alike. */
const CODE_ALPHABET = 'ABCDEFGHJKMNPQRSTVWXYZ23456789';
const CODE_LENGTH = 10;
const CODE_LIFETIME_MS = 30 * 60_000;
const MAX_TRIES = 10;
const MAX_PENDING_CODES = 3;

type PendingCode = { readonly hash: string; readonly expiresAt: number; readonly tries: number };

/** `expiresAt`: epoch milliseconds. */
export type IssuedCode = { readonly code: string; readonly expiresAt: number };

const PENDING = listShape(rowShape<PendingCode>({ hash: text, expiresAt: number, tries: number }));

export type CodesDeps = {
  readonly state: KeyValueStore;
  readonly clock: Clock;
  randomBytes(size: number): Uint8Array;
};

export interface PairingCodes {
  issue(channel: string): Promise<IssuedCode>;
  /**
   * The row that uses a good code up, to be written together with what it grants; undefined where
   * the code is wrong, which counts against all that are open.
   */
  redeem(
    channel: string,
    code: string,
  ): Promise<{ readonly key: string; readonly value: string } | undefined>;
}

export function createPairingCodes({ state, clock, randomBytes }: CodesDeps): PairingCodes {
  async function pending(channel: string): Promise<readonly PendingCode[]> {
    const stored = await state.get(keyOf(channel));
    const codes = jsonRow(stored ?? '', PENDING) ?? [];
    return codes.filter((code) => code.expiresAt > clock.now() && code.tries < MAX_TRIES);
  }

  return {
    async issue(channel) {
      const code = randomCode(randomBytes);
      const expiresAt = clock.now() + CODE_LIFETIME_MS;
      const earlier = (await pending(channel)).slice(1 - MAX_PENDING_CODES);
      const codes = [...earlier, { hash: hashOf(code), expiresAt, tries: 0 }];
      await state.set(keyOf(channel), JSON.stringify(codes));
      return { code, expiresAt };
    },

    async redeem(channel, code) {
      const codes = await pending(channel);
      const hash = hashOf(code.trim().toUpperCase());
      const match = codes.find((open) => equal(open.hash, hash));
      if (match !== undefined) {
        const rest = codes.filter((open) => open !== match);
        return { key: keyOf(channel), value: JSON.stringify(rest) };
      }
      const tried = codes.map((open) => ({ ...open, tries: open.tries + 1 }));
      if (tried.length > 0) await state.set(keyOf(channel), JSON.stringify(tried));
      return undefined;
    },
  };
}

export function randomCode(
  randomBytes: CodesDeps['randomBytes'],
  length: number = CODE_LENGTH,
): string {
  const letters = [...randomBytes(length)].map(
    (byte) => CODE_ALPHABET[byte % CODE_ALPHABET.length],
  );
  return letters.join('');
}

const keyOf = (channel: string) => `codes:${channel}`;
export const hashOf = (code: string) => createHash('sha256').update(code).digest('hex');
export const equal = (a: string, b: string) => timingSafeEqual(Buffer.from(a), Buffer.from(b));

// The code a stranger is given to tell the owner: once per person, few open at a time, short-lived,
// kept as a hash. It grants nothing by itself; an owner has to name it.

export const STRANGER_CODE_MINUTES = 30;
const LIFETIME_MS = STRANGER_CODE_MINUTES * 60_000;
/** Per channel; with the lifetime this bounds how many codes a flood of strangers gets in an hour. */
const MAX_OPEN_CODES = 3;

export type StrangerCodesDeps = {
  readonly strangers: Strangers;
  readonly now: () => number;
  randomBytes(size: number): Uint8Array;
};

/** A code for them; undefined where they had one already, or too many are open. */
export async function issueStrangerCode(
  stranger: Stranger,
  { strangers, now, randomBytes }: StrangerCodesDeps,
): Promise<string | undefined> {
  if (stranger.code !== undefined) return undefined;
  const open = (await strangers.list()).filter(
    ({ channel, code }) => channel === stranger.channel && isOpen(code, now()),
  );
  if (open.length >= MAX_OPEN_CODES) return undefined;
  const code = randomCode(randomBytes);
  await strangers.note(stranger, {
    code: { hash: hashOf(code), expiresAt: now() + LIFETIME_MS },
  });
  return code;
}

export function holdsCode({ code }: Stranger, typed: string, now: number): boolean {
  return isOpen(code, now) && code?.hash === hashOf(typed.toUpperCase());
}

const isOpen = (code: Stranger['code'], now: number) => code !== undefined && code.expiresAt > now;

// One-time codes that make their first sender the owner of a channel: kept as hashes, short-lived,
// few at a time, worthless after a few wrong guesses.

import { createHash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import { jsonRow, listShape, number, rowShape, text } from '../lib/json-row.ts';
import type { KeyValueStore } from '../store/store.ts';

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

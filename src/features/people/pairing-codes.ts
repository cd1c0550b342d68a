// One-time codes that make their first sender the owner of a channel: kept as hashes, short-lived,
// few at a time, worthless after a few wrong guesses.

import { createHash, timingSafeEqual } from 'node:crypto';
import type { RowWrite } from '../../kernel/bus/bus.ts';
import { jsonRows, type OpenRows } from '../../kernel/rows.ts';
import { listShape, number, rowShape, text } from '../../lib/json/json.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { PEOPLE_SCOPE, type Stranger, type Strangers } from './strangers.ts';

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
  readonly rows: OpenRows;
  readonly clock: Clock;
  randomBytes(size: number): Uint8Array;
};

export interface PairingCodes {
  issue(channel: string): Promise<IssuedCode>;
  /**
   * The row that uses a good code up, to be written together with what it grants; undefined where
   * the code is wrong, which counts against all that are open.
   */
  redeem(channel: string, code: string): Promise<RowWrite | undefined>;
}

export function createPairingCodes({ rows, clock, randomBytes }: CodesDeps): PairingCodes {
  const byChannel = rows({ ...jsonRows(PENDING), scope: PEOPLE_SCOPE, prefix: 'codes:' });
  const good = (codes: readonly PendingCode[] = []) =>
    codes.filter((code) => code.expiresAt > clock.now() && code.tries < MAX_TRIES);

  return {
    async issue(channel) {
      const code = randomCode(randomBytes);
      const expiresAt = clock.now() + CODE_LIFETIME_MS;
      const issued = { hash: hashOf(code), expiresAt, tries: 0 };
      await byChannel.change(channel, (codes) => [
        ...good(codes).slice(1 - MAX_PENDING_CODES),
        issued,
      ]);
      return { code, expiresAt };
    },

    async redeem(channel, code) {
      const codes = good(await byChannel.get(channel));
      const hash = hashOf(code.trim().toUpperCase());
      const match = codes.find((open) => equal(open.hash, hash));
      if (match !== undefined) {
        const rest = codes.filter((open) => open !== match);
        return byChannel.write(channel, rest);
      }
      await byChannel.change(channel, (pending) => {
        const tried = good(pending).map((open) => ({ ...open, tries: open.tries + 1 }));
        return tried.length === 0 ? undefined : tried;
      });
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

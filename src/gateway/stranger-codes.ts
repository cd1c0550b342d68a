// The code a stranger is given to tell the owner: once per person, few open at a time, short-lived,
// kept as a hash. It grants nothing by itself; an owner has to name it.

import { createHash } from 'node:crypto';
import { randomCode } from './pairing-codes.ts';
import type { Stranger, Strangers } from './strangers.ts';

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
const hashOf = (code: string) => createHash('sha256').update(code).digest('hex');

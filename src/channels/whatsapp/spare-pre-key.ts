// A pre-key that is on disk before anybody asks for one. Baileys puts a new pre-key into a retry
// receipt and commits it only after the receipt went out; with a spare one it hands out what is
// stored already, and a process that dies in between has lost nothing.

import { type AuthenticationCreds, Curve } from '@whiskeysockets/baileys';
import type { KeyValueStore } from '../../store/store.ts';
import { textOf } from './creds-generations.ts';
import { encodeKey, keyRow, PRE_KEY_PREFIX, preKeyIdOf, type Row } from './key-rows.ts';
import type { Unit } from './unit-queue.ts';

/** The row of a spare pre-key where there is none on disk; counts it in the credentials. */
export async function spareFor(unit: Unit, creds: AuthenticationCreds): Promise<readonly Row[]> {
  const isCounted = creds.nextPreKeyId > creds.firstUnuploadedPreKeyId;
  const id = String(isCounted ? creds.nextPreKeyId - 1 : creds.nextPreKeyId);
  const key = keyRow('pre-key', id);
  // Counted and not there: the transaction that should have written it failed.
  if (isCounted && (await unit.get(key)) !== undefined) return [];
  if (!isCounted) creds.nextPreKeyId += 1;
  return [{ key, value: encodeKey('pre-key', id, Curve.generateKeyPair()) }];
}

/**
 * Moves the counters behind every id that may be in use: older credentials count fewer, and a spare
 * of the last process may have been handed out as it died. It stays readable and is not offered again.
 */
export async function skipUsedIds(state: KeyValueStore, creds: AuthenticationCreds): Promise<void> {
  const [newest] = await state.list(PRE_KEY_PREFIX, { limit: 1, newestFirst: true });
  const behind = newest === undefined ? 1 : preKeyIdOf(newest.key) + 1;
  creds.nextPreKeyId = Math.max(creds.nextPreKeyId, behind);
  creds.firstUnuploadedPreKeyId = creds.nextPreKeyId;
}

/** The counters move with every start; they make no other credentials. */
export function isSameButForCounters(
  one: AuthenticationCreds,
  other: AuthenticationCreds,
): boolean {
  const counters = { nextPreKeyId: 0, firstUnuploadedPreKeyId: 0 };
  return textOf({ ...one, ...counters }) === textOf({ ...other, ...counters });
}

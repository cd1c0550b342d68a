// A pre-key that is on disk before anybody asks for one. Baileys puts a new pre-key into a retry
// receipt and commits it only after the receipt went out; with a spare one it hands out what is
// stored already, and a process that dies in between has lost nothing.

import { type AuthenticationCreds, Curve } from '@whiskeysockets/baileys';
import type { KeyValueChange, KeyValueStore } from '../../kernel/bus/store/store.ts';
import { textOf } from './creds-generations.ts';
import { encodeKey, keyRow, PRE_KEY_PREFIX, preKeyIdOf } from './signal-keys.ts';

export type Spare = {
  readonly row: KeyValueChange;
  /** It could not be stored: Baileys must not take it for there. */
  discard(): void;
};

/** A spare pre-key where there is none; counted in the credentials from now on. */
export function makeSpare(creds: AuthenticationCreds): Spare | undefined {
  if (creds.nextPreKeyId > creds.firstUnuploadedPreKeyId) return undefined;
  const id = creds.nextPreKeyId;
  creds.nextPreKeyId = id + 1;
  const value = encodeKey('pre-key', String(id), Curve.generateKeyPair());
  return {
    row: { key: keyRow('pre-key', String(id)), value },
    discard() {
      if (creds.nextPreKeyId === id + 1) creds.nextPreKeyId = id;
    },
  };
}

/**
 * Moves the counters behind every id that may be in use: older credentials count fewer, and a spare
 * of the last process may have been handed out as it died. It stays readable and is not offered again.
 * Returns the row of a new spare.
 */
export async function skipUsedIds(
  state: KeyValueStore,
  creds: AuthenticationCreds,
): Promise<readonly KeyValueChange[]> {
  const [newest] = await state.list(PRE_KEY_PREFIX, { limit: 1, newestFirst: true });
  const behind = newest === undefined ? 1 : preKeyIdOf(newest.key) + 1;
  creds.nextPreKeyId = Math.max(creds.nextPreKeyId, behind);
  creds.firstUnuploadedPreKeyId = creds.nextPreKeyId;
  // Before the first upload there is none: that one makes its own.
  const spare = creds.nextPreKeyId === 1 ? undefined : makeSpare(creds);
  return spare === undefined ? [] : [spare.row];
}

/** The counters move with every start; they make no other credentials. */
export function isSameButForCounters(
  one: AuthenticationCreds,
  other: AuthenticationCreds,
): boolean {
  const counters = { nextPreKeyId: 0, firstUnuploadedPreKeyId: 0 };
  return textOf({ ...one, ...counters }) === textOf({ ...other, ...counters });
}

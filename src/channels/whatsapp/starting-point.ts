// Which stored credentials a start begins with, and when there is nothing to begin with. It never
// answers "none" where something is stored: that would silently be a new identity.

import type { AuthenticationCreds } from '@whiskeysockets/baileys';
import type { KeyValueStore } from '../../store/store.ts';
import { credsOf, type Generation, type StoredGenerations } from './creds-generations.ts';
import { keyRow, PRE_KEY_PREFIX } from './key-rows.ts';
import { isLinked } from './linked-account.ts';

export type StartingPoint =
  | { readonly kind: 'none' }
  /** A pairing that was begun and never completed: the server would refuse it with 401. */
  | { readonly kind: 'half_made' }
  | { readonly kind: 'damaged' }
  | {
      readonly kind: 'stored';
      readonly generation: Generation;
      /** The newest generation, where it could not be read. */
      readonly recoveredFrom?: number;
    };

export async function chooseStart(
  state: KeyValueStore,
  { intact, damaged }: StoredGenerations,
): Promise<StartingPoint> {
  const [newest] = intact;
  const [newestDamaged] = damaged;
  if (newestDamaged !== undefined && newestDamaged.number >= (newest?.number ?? 0)) {
    return recover(intact, newestDamaged.number);
  }
  if (newest === undefined) return (await hasKeys(state)) ? { kind: 'damaged' } : { kind: 'none' };
  return isHalfMade(credsOf(newest))
    ? { kind: 'half_made' }
    : { kind: 'stored', generation: newest };
}

function recover(intact: readonly Generation[], recoveredFrom: number): StartingPoint {
  const linked = intact.filter((one) => isLinked(credsOf(one)));
  const generation = linked.find(({ openedAt }) => openedAt !== undefined) ?? linked[0];
  return generation === undefined
    ? { kind: 'damaged' }
    : { kind: 'stored', generation, recoveredFrom };
}

const isHalfMade = (creds: AuthenticationCreds) => creds.me !== undefined && !isLinked(creds);

/** Keys without credentials: these were there once. */
async function hasKeys(state: KeyValueStore): Promise<boolean> {
  const kinds = [keyRow('session', ''), PRE_KEY_PREFIX];
  const found = await Promise.all(kinds.map((prefix) => state.list(prefix, { limit: 1 })));
  return found.some((rows) => rows.length > 0);
}

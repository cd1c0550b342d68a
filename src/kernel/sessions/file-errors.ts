// The few file system errors that are answers, not failures.

import { createHash } from 'node:crypto';
import type { SessionKey } from '../message/ids.ts';
import { encodeKey, MAX_STEM_BYTES } from './rules/name.ts';

type SystemErrorCode = 'ENOENT' | 'EEXIST' | 'EXDEV';

export function hasErrorCode(error: unknown, code: SystemErrorCode): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** For `catch`: the expected error becomes undefined, any other is thrown on. */
export function orUndefined(code: SystemErrorCode): (error: unknown) => undefined {
  return (error) => {
    if (hasErrorCode(error, code)) return undefined;
    throw error;
  };
}

// The part of a file name that stands for the session. A key too long for a file name is shortened
// and told apart by a hash; `~` marks that, and never stands in a whole one.

const HASH_CHARS = 32;

export function stemOf(key: SessionKey): string {
  const encoded = encodeKey(key);
  if (encoded.length <= MAX_STEM_BYTES) return encoded;
  const hash = createHash('sha256').update(key).digest('hex').slice(0, HASH_CHARS);
  return `${encoded.slice(0, MAX_STEM_BYTES - HASH_CHARS - 1)}~${hash}`;
}

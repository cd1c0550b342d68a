// What the file tools need besides their input.

import type { GuardedFiles } from '../lib/guarded-files.ts';

export type WorkspaceAccess = { readonly files: GuardedFiles };

/** Largest file that is read, bytes. */
export const MAX_READ_BYTES = 10_000_000;
/** Largest file that is written, bytes. */
export const MAX_WRITE_BYTES = 5_000_000;
export const MAX_PATH_CHARS = 4096;

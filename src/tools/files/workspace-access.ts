// What the file tools need besides their input, and which notes they keep away from.

import { ToolError } from '../../kernel/message/errors.ts';
import { leadsToOthers } from '../../kernel/message/notes.ts';
import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import type { ToolContext } from '../tool.ts';
import type { OwnFiles } from './own-files.ts';

export type WorkspaceAccess = {
  readonly files: GuardedFiles;
  /** Left out: what stands in the workspace counts as words of others. */
  readonly own?: OwnFiles | undefined;
};

/** Largest file that is read, bytes. */
export const MAX_READ_BYTES = 10_000_000;
/** Largest file that is written, bytes. */
export const MAX_WRITE_BYTES = 5_000_000;
export const MAX_PATH_CHARS = 4096;

/**
 * To be asked by every tool that takes a path. One person's turn does not reach another's notes.
 * @throws ToolError
 */
export function checkNotes(path: string, { person }: Pick<ToolContext, 'person'>): void {
  if (!leadsToOthers(path, person.notes)) return;
  throw new ToolError('permission', `"${path}" is not for the person you talk to`);
}

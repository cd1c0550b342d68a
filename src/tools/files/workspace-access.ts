// Access of the file tools to the workspace, and the record of files the agent wrote itself without
// untrusted content in view: reading those again does not taint the turn.

import { createHash } from 'node:crypto';
import { isOwnName } from '../../agent/rules/rule-files.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { leadsToOthers } from '../../kernel/message/notes.ts';
import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import type { ToolContext } from '../tool.ts';

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

/** The folder that the path is relative to. @throws ToolError as `checkNotes` */
export function workspaceFor(path: string, context: ToolContext): string {
  checkNotes(path, context);
  return context.workspace;
}

// Which texts and names in the workspace the agent wrote for a person while nobody else's words were in
// view: reading those again brings no words of others. A text is known by its hash, so whatever else
// changes a file makes it unknown again.

type Turn = Pick<ToolContext, 'person' | 'isTainted' | 'clock'>;

export type OwnFiles = ReturnType<typeof createOwnFiles>;

export const OWN_FILES_SCOPE = 'own-files';
const TEXT = 'text:';
const NAME = 'name:';
const KEPT_MS = 365 * 86_400_000;

export function createOwnFiles(state: KeyValueStore) {
  const textKey = (content: string | Uint8Array, { person }: Turn) =>
    `${TEXT}${person.notes}:${hashOf(content)}`;
  // A name may hold words that are to be forgotten one day.
  const nameKey = (path: string, { person }: Turn) => `${NAME}${person.notes}:${hashOf(path)}`;
  return {
    /** Nothing is noted where foreign text is in view. */
    async wrote(path: string, content: string, turn: Turn): Promise<void> {
      if (turn.isTainted) return;
      const names = plainNames(path);
      const paths = (names ?? []).map((_, index) => names?.slice(0, index + 1).join('/') ?? '');
      const keys = [textKey(content, turn), ...paths.map((each) => nameKey(each, turn))];
      await state.setMany(keys.map((key) => ({ key, value: '' })));
      await state.expire('', turn.clock.now() - KEPT_MS);
    },
    holds: async (content: string | Uint8Array, turn: Turn) =>
      (await state.get(textKey(content, turn))) !== undefined,
    /** All of these names, of what stands in this folder. */
    async named(folder: string, names: readonly string[], turn: Turn): Promise<boolean> {
      const above = folder === '.' ? [] : plainNames(folder);
      if (above === undefined) return false;
      for (const name of names) {
        if (isOwnName(above, name)) continue;
        const path = [...above, name].join('/');
        if ((await state.get(nameKey(path, turn))) === undefined) return false;
      }
      return true;
    },
  };
}

const hashOf = (content: string | Uint8Array) => createHash('sha256').update(content).digest('hex');

/** Undefined where the path takes turns. */
function plainNames(path: string): readonly string[] | undefined {
  const names = path
    .replace(/^(?:\.\/)+/, '')
    .replace(/\/+$/, '')
    .split('/');
  return names.some((name) => name === '' || name === '.' || name === '..') ? undefined : names;
}

// Files as text: what is no text is refused, because neither a model nor an exact edit can use it.

const NUL = 0;

/** @throws ToolError execution: binary or not UTF-8 */
export function decodeText(content: Uint8Array): string {
  if (content.includes(NUL)) {
    throw new ToolError('execution', 'this is a binary file; only text files can be used');
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
  } catch (cause) {
    throw new ToolError('execution', 'the file is not UTF-8 text', { cause });
  }
}

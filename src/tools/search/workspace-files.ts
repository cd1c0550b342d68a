// Every file below a folder of the workspace, links and protected ones left out.

import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import { GuardedFileError } from '../../lib/files/guarded-path.ts';

export type FoundFile = {
  /** Relative to the workspace. */
  readonly path: string;
  readonly bytes: number;
};

const MAX_FILES = 10_000;
const MAX_DEPTH = 20;
const MAX_ENTRIES = 2000;
/** What programs put there, not people. */
const SKIPPED = new Set(['node_modules', '.git', '__pycache__', '.venv']);

/** By path. `isWhole`: nothing was left out for being too much. @throws GuardedFileError */
export async function workspaceFiles(
  guarded: GuardedFiles,
  workspace: string,
  start: string,
  signal: AbortSignal,
): Promise<{ readonly files: readonly FoundFile[]; readonly isWhole: boolean }> {
  const files: FoundFile[] = [];
  let isWhole = true;
  const walk = async (folder: string, depth: number): Promise<void> => {
    signal.throwIfAborted();
    const listing = await guarded.list(workspace, folder, { maxEntries: MAX_ENTRIES });
    if (listing.omitted > 0) isWhole = false;
    for (const { name, kind, bytes } of listing.entries) {
      if (files.length >= MAX_FILES || depth > MAX_DEPTH) {
        isWhole = false;
        return;
      }
      const path = folder === '.' ? name : `${folder}/${name}`;
      if (kind === 'file') files.push({ path, bytes });
      if (kind === 'folder' && !SKIPPED.has(name)) await walk(path, depth + 1).catch(ifGone);
    }
  };
  await walk(start.replace(/^\.\/+/, '').replace(/\/+$/, '') || '.', 1);
  return { files, isWhole };
}

/** Removed, or not to be read, while the rest is. */
function ifGone(error: unknown): void {
  if (!(error instanceof GuardedFileError)) throw error;
}

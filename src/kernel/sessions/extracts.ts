// Makes conversations searchable for the agent: an extract of each session file as
// memory/sessions/SESSION_<hash>.md in the workspace, where recall looks. Only on the owner's command,
// because memory is shared by all chats.

import { createHash } from 'node:crypto';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createGuardedFiles } from '../../lib/files/guarded-files.ts';
import { keyOfFile, readOwnEntries, type StoredFile, storedFiles } from './catalog.ts';
import { orUndefined } from './file-errors.ts';
import { extractHeader, extractLine } from './rules/extract.ts';
import { formatName, type SessionFileName } from './rules/name.ts';

const EXTRACT_FOLDER = join('memory', 'sessions');
const EXTRACT_NAME = /^SESSION_[0-9a-f]{16}\.md$/;
/** Longest extract, characters. */
const MAX_EXTRACT_CHARS = 100_000;
const HASH_CHARS = 16;

/** Writes the extracts that are missing or older than their session file. */
export async function writeExtracts(
  folder: string,
  workspace: string,
): Promise<{ readonly written: number; readonly present: number }> {
  const files = createGuardedFiles();
  let written = 0;
  let present = 0;
  for (const file of await storedFiles(folder)) {
    const path = extractPath(file.name);
    const existing = await stat(join(workspace, path)).catch(orUndefined('ENOENT'));
    if (existing !== undefined && existing.mtimeMs >= file.modifiedAt) present += 1;
    else {
      await files.write(workspace, path, await extract(file));
      written += 1;
    }
  }
  return { written, present };
}

/** Deletes the extract of one session file, if there is one. */
export async function removeExtract(workspace: string, name: SessionFileName): Promise<void> {
  await rm(join(workspace, extractPath(name)), { force: true });
}

export async function removeAllExtracts(workspace: string): Promise<void> {
  const folder = join(workspace, EXTRACT_FOLDER);
  const names = (await readdir(folder).catch(orUndefined('ENOENT'))) ?? [];
  for (const name of names) {
    if (EXTRACT_NAME.test(name)) await rm(join(folder, name), { force: true });
  }
}

function extractPath(name: SessionFileName): string {
  const hash = createHash('sha256').update(formatName(name)).digest('hex').slice(0, HASH_CHARS);
  return join(EXTRACT_FOLDER, `SESSION_${hash}.md`);
}

async function extract(file: StoredFile): Promise<string> {
  const lines: string[] = [];
  let chars = 0;
  for await (const entry of readOwnEntries(file.path)) {
    const line = extractLine(entry);
    if (line === undefined) continue;
    chars += line.length;
    if (chars > MAX_EXTRACT_CHARS) {
      lines.push('- [truncated, the rest of the conversation omitted]');
      break;
    }
    lines.push(line);
  }
  return `${extractHeader(await keyOfFile(file), file.name.day)}${lines.join('\n')}\n`;
}

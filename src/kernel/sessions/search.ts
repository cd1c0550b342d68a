// Searches the text of all sessions. Files are read as streams, and a line is only parsed when its
// raw bytes may hold the words, so memory and time stay small.

import { join } from 'node:path';
import { findSnippet } from '../../lib/text/cut.ts';
import { ARCHIVE_FOLDER, keyOfFile, sessionNames } from './catalog.ts';
import type { SearchHit } from './maintenance.ts';
import { readLines } from './read-lines.ts';
import { decodeLine } from './rules/file.ts';
import { compareAge, formatName } from './rules/name.ts';

/** JSON never escapes letters and digits, so they stand in the raw line as in the text. */
const WORD = /[\p{L}\p{N}]+/gu;

/** Newest file first, within a file oldest entry first. */
export async function* searchSessions(
  folder: string,
  query: string,
  limit: number,
): AsyncGenerator<SearchHit, void, void> {
  if (query.trim() === '') return;
  let left = limit;
  for (const place of [folder, join(folder, ARCHIVE_FOLDER)]) {
    const names = [...(await sessionNames(place))].sort((a, b) => compareAge(b, a));
    for (const name of names) {
      for await (const hit of searchFile({ path: join(place, formatName(name)), name }, query)) {
        if (left <= 0) return;
        yield hit;
        left -= 1;
      }
      if (left <= 0) return;
    }
  }
}

async function* searchFile(
  file: Parameters<typeof keyOfFile>[0],
  query: string,
): AsyncGenerator<SearchHit, void, void> {
  const words = query.toLowerCase().match(WORD) ?? [];
  for await (const line of readLines(file.path)) {
    const text = line.bytes.toString('utf8');
    const lowered = text.toLowerCase();
    if (!words.every((word) => lowered.includes(word))) continue;
    const decoded = decodeLine(text);
    if (decoded.kind !== 'entry' || decoded.carried) continue;
    const { entry } = decoded;
    if (
      entry.role === 'reset' ||
      entry.role === 'undo' ||
      entry.role === 'turn_end' ||
      entry.role === 'restore'
    )
      continue;
    const snippet = findSnippet(entry.text, query);
    if (snippet === undefined) continue;
    yield { session: await keyOfFile(file), at: entry.at, role: entry.role, snippet };
  }
}

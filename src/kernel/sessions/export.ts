// A conversation as text for people (Markdown) or programs (JSONL), in pieces. The JSONL form is
// that of the session files: one header, then one entry a line.

import type { SessionKey } from '../message/ids.ts';
import { readSession } from './catalog.ts';
import { stemOf } from './file-lines.ts';
import { markdownOfEntry } from './rules/extract.ts';
import { encodeEntry, encodeHeader } from './rules/file.ts';

export async function* exportSession(
  folder: string,
  key: SessionKey,
  format: 'md' | 'jsonl',
): AsyncGenerator<string, void, void> {
  let isFirst = true;
  for await (const entry of readSession(folder, stemOf(key))) {
    if (isFirst) {
      const header = encodeHeader({ key, createdAt: entry.at, carried: 0 });
      yield format === 'md' ? `# ${key}\n` : `${header}\n`;
    }
    isFirst = false;
    yield format === 'md' ? markdownOfEntry(entry) : `${encodeEntry(entry)}\n`;
  }
}

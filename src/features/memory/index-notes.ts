// Finds notes through the full-text index, which is brought up to date with the files first: what
// changed is read again, a bounded number at a time.

import { join } from 'node:path';
import { fileStamp } from '../../lib/files/files.ts';
import type { MemoryHit, TextIndex } from './memory.ts';
import { listNotes, type NoteEntry, type NoteReader, readNote } from './note-files.ts';
import { passagesOf, type RecallLimits, withinLimits } from './rules/recall-rank.ts';

const PREFIX = 'notes/';
/** Changed files that are read before one answer; the others follow with the next. */
const MAX_READ = 100;

/** Nothing found there is nothing found at all, or words inside of others. @throws where it is not usable */
export async function findNotes(
  index: TextIndex,
  reader: NoteReader,
  query: { readonly words: string; readonly notes: string; readonly now: number },
  limits: RecallLimits,
): Promise<readonly MemoryHit[]> {
  const { words, notes, now } = query;
  await refresh(index, reader, notes);
  const found = index.find(words, { scopes: [scopeOfNotes(notes)], limit: limits.maxHits, now });
  const passages = found.map(({ label, place, text }) => ({ source: label, line: place, text }));
  return withinLimits(passages, limits);
}

/** Takes out of the index what lies in no file any more, whoever's it was. */
export async function forgetMissingNotes(index: TextIndex, workspace: string): Promise<void> {
  for (const name of index.sources(PREFIX)) {
    const stamp = fileStamp(join(workspace, name.slice(PREFIX.length)));
    if (stamp === undefined) index.remove(name);
  }
}

const scopeOfNotes = (notes: string) => `notes:${notes}`;

async function refresh(index: TextIndex, reader: NoteReader, notes: string): Promise<void> {
  const entries = await listNotes(reader, notes);
  const present = new Set(entries.map(nameOf));
  for (const name of index.sources(`${PREFIX}${notes}memory/`)) {
    if (!present.has(name)) index.remove(name);
  }
  const changed = entries.filter((entry) => index.state(nameOf(entry))?.stamp !== stampOf(entry));
  for (const entry of changed.slice(0, MAX_READ)) await indexNote(index, reader, notes, entry);
}

async function indexNote(index: TextIndex, reader: NoteReader, notes: string, entry: NoteEntry) {
  const note = await readNote(reader, entry.path);
  const parts = (note === undefined ? [] : passagesOf(note)).map(({ line, text }) => ({
    ...{ place: line, text, at: entry.modifiedAt },
    role: 'note' as const,
    isForeign: false,
  }));
  const source = { name: nameOf(entry), scope: scopeOfNotes(notes), label: entry.path };
  index.put(source, { stamp: stampOf(entry), position: entry.bytes }, parts, true);
}

const nameOf = ({ path }: NoteEntry) => PREFIX + path;
const stampOf = ({ bytes, modifiedAt }: NoteEntry) => `${bytes} ${modifiedAt}`;

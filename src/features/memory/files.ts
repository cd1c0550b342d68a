// Memory as Markdown files that a person can read and edit: memory/MEMORY.md for facts, notes by day
// and of sessions beside it. What their lines look like is decided in rules/memory-notes.ts.

import { join } from 'node:path';
import { MEMORY_FILE } from '../../agent/rules/prompt.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { isoTime } from '../../kernel/sessions/rules/entry.ts';
import { daysBack } from '../../kernel/sessions/rules/file.ts';
import { mapLimited } from '../../lib/async.ts';
import { fileStamp } from '../../lib/files/files.ts';
import { keepLastLines } from '../../lib/text/cut.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createDayText, createMinuteText } from '../../lib/time/zone-time.ts';
import { findNotes } from './index-notes.ts';
import type { MemoryHit, MemoryStore, TextIndex } from './memory.ts';
import {
  listNotes,
  MAX_NOTE_BYTES,
  type NoteEntry,
  type NoteReader,
  readNote,
} from './note-files.ts';
import { addFact, addLearnings, addNote } from './rules/memory-notes.ts';
import { rankPassages } from './rules/recall-rank.ts';

export type FileMemoryDeps = NoteReader & {
  readonly clock: Clock;
  /** IANA zone of dates; empty = the machine's. */
  readonly timeZone: () => string;
  /** Without it, or where it finds nothing, the newest notes are read through. */
  readonly index?: TextIndex;
};

export const LEARNINGS_FILE = 'memory/learnings.jsonl';

const MAX_FACT_CHARS = 2000;
/** Ranking this much takes about a tenth of a second, in which nothing else runs. */
const MAX_SEARCHED_BYTES = 1_000_000;
const MAX_READ_AT_ONCE = 4;
/** Memories kept for the next turn. */
const MAX_SHOWN = 64;
/** Of the notes of the last days. */
const SHOWN_DAYS = 3;
const MAX_NOTES_CHARS = 800;
const RECALL_LIMITS = { maxHits: 5, maxChars: 8000 };
const DAY_MS = 86_400_000;

type ShownMemory = { readonly stamps: string; readonly text: string };

export function createFileMemory(deps: FileMemoryDeps): MemoryStore {
  const { files, workspace, log, clock, index } = deps;
  const dayOf = createDayText();
  const minuteOf = createMinuteText();
  /** By notes: read at every turn, changed rarely. */
  const shown = new Map<string, ShownMemory>();

  async function add(path: string, text: string, change: (before: string) => string | undefined) {
    if (text.trim() === '' || text.length > MAX_FACT_CHARS) {
      throw new NanobotError('fact_refused', `a fact has 1 to ${MAX_FACT_CHARS} characters`);
    }
    let isNew = false;
    const changed = (content: Buffer | undefined) => {
      const after = change(content?.toString('utf8') ?? '');
      isNew = after !== undefined;
      return after;
    };
    await files.update(workspace(), path, changed, { maxBytes: MAX_NOTE_BYTES });
    return isNew ? 'added' : 'known';
  }

  async function indexed(words: string, notes: string): Promise<readonly MemoryHit[]> {
    if (index === undefined) return [];
    try {
      return await findNotes(index, deps, { words, notes, now: clock.now() }, RECALL_LIMITS);
    } catch (error) {
      log.warn('notes searched without the index', { error });
      return [];
    }
  }

  /** The days that are today or lately somewhere on earth. */
  const shownDays = () => daysBack(dayOf(clock.now() + DAY_MS, deps.timeZone()), SHOWN_DAYS + 1);

  return {
    remember(fact, notes = '') {
      const day = dayOf(clock.now(), deps.timeZone());
      return add(notes + MEMORY_FILE, fact, (before) => addFact(before, fact, day));
    },
    note(text, { notes, timeZone = deps.timeZone() }) {
      const [day = '', time = ''] = minuteOf(clock.now(), timeZone).split(' ');
      const path = `${notes}memory/${day}.md`;
      return add(path, text, (before) => addNote(before, text, { day, time }));
    },
    async learn(learnings, { notes }) {
      const now = clock.now();
      const lines = learnings.map(({ tool, ...rest }) => ({
        timestamp: isoTime(now),
        ...rest,
        ...(tool === undefined ? {} : { tool_name: tool }),
      }));
      const change = (content: Buffer | undefined) =>
        addLearnings(content?.toString('utf8') ?? '', lines, now);
      const path = notes + LEARNINGS_FILE;
      await files.update(workspace(), path, change, { maxBytes: MAX_NOTE_BYTES });
    },
    async recall(query, notes = ''): Promise<readonly MemoryHit[]> {
      const found = await indexed(query, notes);
      if (found.length > 0) return found;
      const read = ({ path }: NoteEntry) => readNote(deps, path);
      const newest = longTermFirst(await listNotes(deps, notes), notes);
      const texts = await mapLimited(bounded(newest), MAX_READ_AT_ONCE, read);
      const readable = texts.filter((note) => note !== undefined);
      return rankPassages(query, readable, RECALL_LIMITS);
    },
    async promptText(notes = '') {
      const days = shownDays().map((day) => `${notes}memory/${day}.md`);
      const paths = [notes + MEMORY_FILE, ...days];
      const found = paths.map((path) => fileStamp(join(workspace(), path)));
      const stamps = found.map((stamp, at) => `${paths[at]} ${stamp}`).join('\n');
      const known = shown.get(notes);
      if (known?.stamps === stamps) return known.text;
      const there = paths.filter((_path, at) => found[at] !== undefined);
      const text = await promptOf(deps, notes + MEMORY_FILE, there);
      if (shown.size >= MAX_SHOWN) shown.clear();
      shown.set(notes, { stamps, text });
      return text;
    },
  };
}

async function promptOf(reader: NoteReader, longTerm: string, paths: readonly string[]) {
  const texts = await Promise.all(paths.map((path) => readNote(reader, path)));
  const readable = texts.filter((note) => note !== undefined);
  const facts = readable.find(({ source }) => source === longTerm)?.text.trim() ?? '';
  const notes = readable.filter(({ source }) => source !== longTerm).map(({ text }) => text.trim());
  // Newest last, as in the long-term memory.
  const recent = keepLastLines(notes.reverse().join('\n\n'), MAX_NOTES_CHARS).trim();
  return [facts, ...(recent === '' ? [] : [`# Notes of the last days\n\n${recent}`])]
    .filter((part) => part !== '')
    .join('\n\n');
}

function longTermFirst(entries: readonly NoteEntry[], notes: string): readonly NoteEntry[] {
  const isLongTerm = ({ path }: NoteEntry) => path === notes + MEMORY_FILE;
  return [...entries.filter(isLongTerm), ...entries.filter((entry) => !isLongTerm(entry))];
}

/** As many as may be searched in one go. */
function bounded(entries: readonly NoteEntry[]): readonly NoteEntry[] {
  let bytes = 0;
  return entries.filter((entry) => {
    bytes += entry.bytes;
    return bytes <= MAX_SEARCHED_BYTES;
  });
}

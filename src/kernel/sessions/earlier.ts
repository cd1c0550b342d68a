// Finds earlier turns of a conversation in its files, from the newest file back. Memory holds only
// the requested turns, and the number of files opened for one question is bounded.

import { join } from 'node:path';
import { systemCode } from '../../lib/files/files.ts';
import { findSnippet } from '../../lib/text/cut.ts';
import { firstSeqOf, type ResultId, type SessionKey, type TurnId } from '../message/ids.ts';
import type { ToolEntry, TranscriptEntry } from '../message/transcript.ts';
import { ARCHIVE_FOLDER, allFiles, type FilePlace, keyOfFile } from './catalog.ts';
import { readDecoded, readLines } from './file-lines.ts';
import { resetPoint, turnOf, undoPoint } from './rules/carry.ts';
import {
  type EarlierQuestion,
  type EarlierTurn,
  type EarlierTurns,
  holdsWords,
  turnOfResult,
  wordsIn,
} from './rules/earlier.ts';
import { decodeLine, formatName, parseName, type SessionFileName } from './rules/file.ts';
import type { SessionStore } from './store.ts';

const MAX_FILES = 100;
/** An undo follows its turn: this many further turns are held until the end of a file. */
const SPARE_TURNS = 20;

/** What was hidden, and what of that was restored in a later file; whether the part is reached. */
type Taken = { readonly undone: Set<TurnId>; readonly back: Set<string>; isReached: boolean };

type ReadFile = {
  readonly turns: readonly EarlierTurn[];
  /** There are earlier turns. */
  readonly hasMore: boolean;
  /** Number of its first turn. */
  readonly first: number;
  /** Undefined if the conversation began in this file. */
  readonly continues: SessionFileName | undefined;
  /** The reset with which the conversation began in this file. */
  readonly beganAt: number | undefined;
};

export async function readEarlier(
  folder: string,
  newest: SessionFileName | undefined,
  question: EarlierQuestion,
): Promise<EarlierTurns> {
  const { from, maxTurns, maxFiles = MAX_FILES } = question;
  const isReached = question.beforeReset === undefined;
  const taken: Taken = { undone: new Set(), back: new Set(), isReached };
  let found: readonly EarlierTurn[] = [];
  let name = newest;
  let beganAt: number | undefined;
  for (let files = 0; name !== undefined && files < maxFiles; files += 1) {
    const file: ReadFile | undefined = await readTurns(folder, name, question, taken);
    if (file === undefined) break;
    const all = joined(file.turns, found);
    found = from === undefined ? all.slice(-maxTurns) : all.slice(0, maxTurns);
    const isLast = file.continues === undefined;
    if (from === undefined && all.length >= maxTurns) {
      const hasOlder = !isLast || file.hasMore || all.length > maxTurns;
      return { turns: found, hasOlder, ...(hasOlder ? {} : beginning(file)) };
    }
    if (from !== undefined && file.first <= from) {
      return { turns: found, hasOlder: !isLast || file.first < from };
    }
    name = file.continues;
    beganAt = file.beganAt;
  }
  const hasOlder = name !== undefined;
  return { turns: found, hasOlder, ...(beganAt === undefined ? {} : { beganAt }) };
}

const beginning = ({ beganAt }: ReadFile) => (beganAt === undefined ? {} : { beganAt });

/** A turn with a later remark, or one that began in the previous file, is one turn. */
function joined(older: readonly EarlierTurn[], newer: readonly EarlierTurn[]) {
  const byTurn = new Map(older.map((one) => [one.turn, one]));
  for (const one of newer) {
    const begun = byTurn.get(one.turn);
    const entries = [...(begun?.entries ?? []), ...one.entries];
    byTurn.set(one.turn, { ...begun, ...one, entries });
  }
  return [...byTurn.values()];
}

async function readTurns(
  folder: string,
  name: SessionFileName,
  question: EarlierQuestion,
  taken: Taken,
): Promise<ReadFile | undefined> {
  for (const place of [folder, join(folder, ARCHIVE_FOLDER)]) {
    try {
      return await scan(join(place, formatName(name)), question, taken);
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw error;
    }
  }
  return undefined;
}

async function scan(path: string, question: EarlierQuestion, taken: Taken) {
  const turns = new HeldTurns(question);
  const { isReached } = taken;
  let continues: string | undefined;
  let previous: string | undefined;
  let beganAt: number | undefined;
  for await (const line of readDecoded(path)) {
    if (line.kind === 'header') {
      continues ??= line.header.continues;
      previous ??= line.header.continues;
    }
    if (line.kind !== 'entry') continue;
    const { entry } = line;
    if (entry.role === 'restore') taken.back.add(entry.brings);
    if (line.carried) continue;
    if (entry.role === 'undo') {
      if (!taken.back.has(undoPoint(entry.undoes, entry.by))) taken.undone.add(entry.undoes);
    } else if (entry.role === 'reset') {
      if (taken.back.has(resetPoint(entry.at))) continue;
      if (!isReached && entry.at === question.beforeReset) {
        taken.isReached = true;
        break;
      }
      turns.clear();
      continues = '';
      beganAt = entry.at;
    } else turns.add(entry);
  }
  // All of this file is later than the part that is asked for.
  if (!taken.isReached) return { ...NOTHING_READ, continues: nameOf(previous) };
  return {
    beganAt,
    turns: turns.settled(taken.undone),
    hasMore: turns.hasMore,
    first: turns.first,
    continues: nameOf(continues),
  };
}

const NOTHING_READ = {
  turns: [],
  hasMore: false,
  first: Number.POSITIVE_INFINITY,
  beganAt: undefined,
};

const nameOf = (file: string | undefined) => (file === undefined ? undefined : parseName(file));

class HeldTurns {
  readonly #question: EarlierQuestion;
  readonly #words: readonly string[];
  readonly #held = new Map<TurnId, TranscriptEntry[]>();
  #newest: TurnId | undefined;
  hasMore = false;
  first = Number.POSITIVE_INFINITY;

  constructor(question: EarlierQuestion) {
    this.#question = question;
    this.#words = wordsIn(question.words ?? '');
  }

  clear(): void {
    this.#held.clear();
    this.#newest = undefined;
    this.hasMore = false;
    this.first = Number.POSITIVE_INFINITY;
  }

  add(entry: TranscriptEntry): void {
    const id = turnOf(entry);
    if (id === undefined) return;
    const turn = firstSeqOf(id) ?? 0;
    this.first = Math.min(this.first, turn);
    if (!this.#isAskedFor(turn)) return;
    if (id !== this.#newest) this.#settleNewest();
    this.#newest = id;
    const known = this.#held.get(id);
    if (known === undefined) this.#held.set(id, [entry]);
    else known.push(entry);
    this.#letGo();
  }

  settled(undone: ReadonlySet<TurnId>): readonly EarlierTurn[] {
    this.#settleNewest();
    const { withUndone = false } = this.#question;
    return [...this.#held]
      .filter(([id]) => withUndone || !undone.has(id))
      .map(([id, entries]) => ({
        ...{ turn: firstSeqOf(id) ?? 0, entries },
        ...(undone.has(id) ? { isUndone: true } : {}),
      }));
  }

  #isAskedFor(turn: number): boolean {
    const { from, before = Number.POSITIVE_INFINITY } = this.#question;
    return (from === undefined || turn >= from) && turn < before;
  }

  #settleNewest(): void {
    const id = this.#newest;
    if (id === undefined || this.#words.length === 0) return;
    if (!holdsWords(this.#held.get(id) ?? [], this.#words)) this.#held.delete(id);
  }

  #letGo(): void {
    const { from, maxTurns } = this.#question;
    if (this.#held.size <= maxTurns + SPARE_TURNS) return;
    const [oldest] = this.#held.keys();
    const surplus = from === undefined ? oldest : this.#newest;
    if (surplus === undefined) return;
    this.#held.delete(surplus);
    this.hasMore ||= from === undefined;
  }
}

// Finds a tool's whole result by its name in the record of its conversation. Nothing of a turn that
// was undone, nothing from before the conversation's last reset.

export async function findResult(
  sessions: Pick<SessionStore, 'earlier'>,
  session: SessionKey,
  id: ResultId,
): Promise<ToolEntry | undefined> {
  const turn = turnOfResult(id);
  const { turns } = await sessions.earlier(session, { from: turn, before: turn + 1, maxTurns: 1 });
  const results = turns
    .flatMap(({ entries }) => entries)
    .filter((entry) => entry.role === 'tool' && entry.resultId === id);
  const [first] = results;
  const known = results.find((entry) => entry.role === 'tool' && entry.status !== 'unknown');
  const found = known ?? first;
  return found?.role === 'tool' ? found : undefined;
}

// Searches the text of all sessions. Files are read as streams, and a line is only parsed if its
// raw bytes may contain the words, so memory and time stay small.

/** JSON never escapes letters and digits, so they occur in the raw line as in the text. */
const WORD = /[\p{L}\p{N}]+/gu;

type SearchHit = {
  readonly session: SessionKey;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly role: 'user' | 'assistant' | 'tool' | 'summary';
  /** The words around the match, on one line. */
  readonly snippet: string;
};

export type SessionSearch = {
  readonly limit: number;
  accepts?(name: SessionFileName): boolean;
  /** A file that cannot be read does not stop the search of the others. */
  unreadable(error: unknown): void;
};

/** Newest file first, within a file oldest entry first. */
export async function* searchSessions(
  folder: string,
  query: string,
  { limit, accepts, unreadable }: SessionSearch,
): AsyncGenerator<SearchHit, void, void> {
  if (query.trim() === '') return;
  let left = limit;
  for (const file of (await allFiles(folder, accepts)).toReversed()) {
    try {
      for await (const hit of searchFile(file, query)) {
        if (left <= 0) return;
        yield hit;
        left -= 1;
      }
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') unreadable(error);
    }
  }
}

async function* searchFile(file: FilePlace, query: string): AsyncGenerator<SearchHit, void, void> {
  const words = query.toLowerCase().match(WORD) ?? [];
  for await (const line of readLines(file.path)) {
    const text = line.bytes.toString('utf8');
    const lowered = text.toLowerCase();
    if (!words.every((word) => lowered.includes(word))) continue;
    const decoded = decodeLine(text);
    if (decoded.kind !== 'entry' || decoded.carried) continue;
    const { entry } = decoded;
    if (!('text' in entry)) continue;
    const snippet = findSnippet(entry.text, query);
    if (snippet === undefined) continue;
    yield { session: await keyOfFile(file), at: entry.at, role: entry.role, snippet };
  }
}

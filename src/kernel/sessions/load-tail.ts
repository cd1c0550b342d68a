// Loads the tail of a session: finds the newest file, repairs it if needed and reads it. The cost
// is that of one file of bounded size, whatever the age of the session.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { undefinedIfMissing } from '../../lib/files/files.ts';
import type { Logger } from '../../lib/logger.ts';
import type { EntryEnd, EntryRow, NewEntryRow } from '../bus/store/store.ts';
import type { SessionKey, TurnId } from '../message/ids.ts';
import type { TranscriptEntry } from '../message/transcript.ts';
import { type FileScan, isUnbegun, repairFile, scanFile, scanText } from './file-lines.ts';
import type { NewestIndex } from './index-file.ts';
import { changesWindow, type Growth, tokensOfBytes, turnOf, windowOf } from './rules/carry.ts';
import { withoutWhole } from './rules/earlier.ts';
import {
  encodeEntry,
  encodeHeader,
  formatName,
  parseName,
  type SessionFileName,
} from './rules/file.ts';

type TailSource = {
  readonly folder: string;
  readonly index: NewestIndex;
  readonly log: Logger;
};

const NOTHING = { end: undefined, carried: [], own: [], turnBefore: undefined };

export async function loadTail(
  source: TailSource,
  stem: string,
  today: string,
): Promise<SessionTail> {
  let name = await source.index.find(stem, today);
  while (name !== undefined) {
    const path = join(source.folder, formatName(name));
    const scan = await scanFile(path);
    const { size, setAside } = await repairFile(path, scan);
    if (setAside > 0) source.log.warn('damaged lines set aside', { file: path, lines: setAside });
    if (!isUnbegun(scan)) return toTail(source.folder, name, scan, size);
    await rm(path);
    name = await source.index.rediscover(stem);
  }
  return new SessionTail(NOTHING);
}

/** From the rows of its newest file, which begin with that file. */
export async function tailOfRows(folder: string, rows: readonly EntryRow[]): Promise<SessionTail> {
  const newest = rows.at(-1);
  const name = newest === undefined ? undefined : parseName(newest.file);
  if (newest === undefined || name === undefined) return new SessionTail(NOTHING);
  const own = rows.filter(({ file }) => file === newest.file);
  const scan = scanText(own.map(({ text }) => text).join(''));
  return toTail(folder, name, scan, newest.place + Buffer.byteLength(newest.text));
}

async function toTail(
  folder: string,
  name: SessionFileName,
  scan: FileScan,
  size: number,
): Promise<SessionTail> {
  const grown = Math.max(0, size - scan.openingBytes);
  const growth = { bytes: grown, tokens: tokensOfBytes(grown) };
  const continues = scan.header?.continues;
  const isYoung = new Set(scan.own.map(turnOf)).size < 2;
  return new SessionTail({
    end: { name, size, growth },
    carried: scan.carried,
    own: scan.own,
    turnBefore:
      isYoung && continues !== undefined ? await lastTurnOf(folder, continues) : undefined,
  });
}

/** A retry after a crash may concern the last turn of the previous file. */
async function lastTurnOf(folder: string, fileName: string): Promise<TurnRecord | undefined> {
  if (parseName(fileName) === undefined) return undefined;
  const scan = await scanFile(join(folder, fileName)).catch(undefinedIfMissing);
  const own: readonly TranscriptEntry[] = scan?.own ?? [];
  const id = own.map(turnOf).findLast((turn) => turn !== undefined);
  if (id === undefined) return undefined;
  return { id, entries: own.filter((entry) => turnOf(entry) === id) };
}

// The end of a session in memory: what the model may see and which turns the newest file contains.
// Loaded from disk once, then updated by every append.

/** The newest file with everything that will be in it. */
type FileEnd = {
  readonly name: SessionFileName;
  /** Bytes. */
  readonly size: number;
  readonly growth: Growth;
};

export type TurnRecord = { readonly id: TurnId; readonly entries: readonly TranscriptEntry[] };

type TailContent = {
  /** Undefined while the session has no file. */
  readonly end: FileEnd | undefined;
  /** The entries carried over at its start. */
  readonly carried: readonly TranscriptEntry[];
  /** The file's own first entries. */
  readonly own: readonly TranscriptEntry[];
  /** Last turn of the previous file: it may be retried after a crash. */
  readonly turnBefore: TurnRecord | undefined;
  /** The start of the file, if it is not committed yet. */
  readonly opening?: string;
  /** Where the conversation ended before that. */
  readonly after?: EntryEnd | undefined;
};

export class SessionTail {
  #end: FileEnd | undefined;
  #window: TranscriptEntry[];
  /** The file's own entries, and where the first of each turn is. */
  readonly #own: TranscriptEntry[] = [];
  readonly #turns = new Map<TurnId, number>();
  readonly #turnBefore: TurnRecord | undefined;
  /** The last lines of the file, not committed yet. */
  #ahead: string;
  #aheadEntries: TranscriptEntry[] = [];
  #after: EntryEnd | undefined;
  #epoch: number | undefined;

  constructor(content: TailContent) {
    this.#end = content.end;
    this.#window = [...windowOf([...content.carried, ...content.own])];
    this.#turnBefore = content.turnBefore;
    this.#ahead = content.opening ?? '';
    this.#after = content.after;
    this.#noteTurns(content.own);
  }

  get end(): FileEnd | undefined {
    return this.#end;
  }

  get window(): readonly TranscriptEntry[] {
    return this.#window;
  }

  /** The turn's entries in order; undefined if it is not known here. */
  turn(id: TurnId): readonly TranscriptEntry[] | undefined {
    const first = this.#turns.get(id);
    if (first !== undefined) return this.#own.slice(first).filter((entry) => turnOf(entry) === id);
    return this.#turnBefore?.id === id ? this.#turnBefore.entries : undefined;
  }

  get lastTurn(): TurnRecord | undefined {
    const id = [...this.#turns.keys()].at(-1);
    return id === undefined ? this.#turnBefore : { id, entries: this.turn(id) ?? [] };
  }

  /** At the end, to be committed. `epoch`: of the turn that writes them. */
  append(entries: readonly TranscriptEntry[], epoch: number | undefined): void {
    if (this.#end === undefined) return;
    const text = entries.map((entry) => `${encodeEntry(entry)}\n`).join('');
    const bytes = Buffer.byteLength(text);
    const grown = this.#end.growth.bytes + bytes;
    this.#end = {
      name: this.#end.name,
      size: this.#end.size + bytes,
      growth: { bytes: grown, tokens: tokensOfBytes(grown) },
    };
    this.#ahead += text;
    this.#aheadEntries.push(...entries);
    this.#epoch ??= epoch;
    const kept = entries.map(withoutWhole);
    this.#window.push(...kept);
    if (kept.some(changesWindow)) this.#window = [...windowOf(this.#window)];
    this.#noteTurns(kept);
  }

  /** Undefined if everything is committed. `epoch`: of the turn whose entries are among them. */
  get ahead():
    | {
        readonly lines: Omit<NewEntryRow, 'session'>;
        /** Without the opening of the file. */
        readonly entries: readonly TranscriptEntry[];
        readonly epoch?: number;
      }
    | undefined {
    if (this.#end === undefined || this.#ahead === '') return undefined;
    const { name, size } = this.#end;
    const place = size - Buffer.byteLength(this.#ahead);
    const lines = { file: formatName(name), place, text: this.#ahead, after: this.#after };
    const entries = this.#aheadEntries;
    return { lines, entries, ...(this.#epoch === undefined ? {} : { epoch: this.#epoch }) };
  }

  committed(): void {
    this.#ahead = '';
    this.#aheadEntries = [];
    this.#after = undefined;
    this.#epoch = undefined;
  }

  #noteTurns(entries: readonly TranscriptEntry[]): void {
    for (const entry of entries) {
      const id = turnOf(entry);
      if (id === undefined) continue;
      if (!this.#turns.has(id)) this.#turns.set(id, this.#own.length);
      this.#own.push(entry);
    }
  }
}

// How a new file begins.

export type Opening = {
  readonly key: SessionKey;
  readonly createdAt: number;
  readonly continues: SessionFileName | undefined;
  readonly carried: readonly TranscriptEntry[];
};

export function openingText({ key, createdAt, continues, carried }: Opening): string {
  const header = encodeHeader({
    key,
    createdAt,
    ...(continues === undefined ? {} : { continues: formatName(continues) }),
    carried: carried.length,
  });
  const lines = [header, ...carried.map((entry) => encodeEntry(entry, true))];
  return lines.map((line) => `${line}\n`).join('');
}

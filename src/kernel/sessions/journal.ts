// Moves session entries from rows of the store into their files (docs/adr/0025). A row knows its
// position in the file, so an interrupted move is simply repeated: what is there already stays, and
// an incomplete line is completed. Runs behind the turns, one batch after the other.

import {
  closeSync,
  constants,
  existsSync,
  fdatasync,
  fstatSync,
  openSync,
  readSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createLanes, mapLimited } from '../../lib/async.ts';
import { syncFolder, systemCode } from '../../lib/files/files.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { EntryRow, EntryRows } from '../bus/store/store.ts';
import type { SessionKey } from '../message/ids.ts';
import { sessionNames } from './catalog.ts';
import { createNewestIndex, type NewestIndex } from './index-file.ts';
import { encodeHeader, formatName, parseName, type SessionFileName } from './rules/file.ts';

type SessionJournalDeps = {
  readonly folder: string;
  readonly store: EntryRows;
  readonly index: Pick<NewestIndex, 'record'>;
  readonly clock: Clock;
  readonly log: Logger;
};

/** After the first row; those that follow until then are moved with it. */
const MOVE_MS = 500;
const RETRY_MS = 5000;
const BATCH_ROWS = 64;
/** The store syncs in the same thread pool. */
const FILES_AT_ONCE = 2;
const FILE_MODE = 0o600;
const NEWLINE = 10;

const datasync = promisify(fdatasync);

type Rows = readonly [EntryRow, ...EntryRow[]];

/**
 * `synced`: the rows are deleted afterwards; `readable`: they stay, and the file contains their
 * text.
 */
type MoveAim = 'synced' | 'readable';

/** Sessions whose file cannot be written, with the reason; their rows stay. */
export type Unwritten = ReadonlyMap<SessionKey, unknown>;

export class SessionJournal implements AsyncDisposable {
  readonly #deps: SessionJournalDeps;
  readonly #lanes = createLanes();
  /** Number of rows of each session in the store. */
  readonly #rows = new Map<SessionKey, number>();
  /** Sessions whose file could not be written last time: each is reported once. */
  readonly #unwritten = new Set<SessionKey>();
  readonly #counted: Promise<void>;
  #timer: Disposable | undefined;
  #isClosed = false;

  constructor(deps: SessionJournalDeps) {
    this.#deps = deps;
    this.#counted = this.#countRows();
    this.#counted.catch((error) => deps.log.warn('session journal not read', { error }));
  }

  /** Rows of an earlier process are moved too. */
  async #countRows(): Promise<void> {
    for (const [session, rows] of await this.#deps.store.entryCounts()) this.added(session, rows);
  }

  /** Whether rows of the session are still to be moved. */
  holds(session: SessionKey): boolean {
    return this.#deps.store.sharedEntries !== undefined || this.#rows.has(session);
  }

  /** Counts committed rows of the session. */
  added(session: SessionKey, rows: number): void {
    this.#count(session, rows);
    this.#moveIn(MOVE_MS);
  }

  #count(session: SessionKey, change: number): void {
    const rows = (this.#rows.get(session) ?? 0) + change;
    if (rows <= 0) this.#rows.delete(session);
    else this.#rows.set(session, rows);
  }

  #moveIn(ms: number): void {
    if (this.#isClosed) return;
    this.#timer ??= this.#deps.clock.timer(ms, () => {
      this.#timer = undefined;
      this.move('synced').then(
        ({ size }) => {
          if (size > 0) this.#moveIn(RETRY_MS);
        },
        (error) => {
          this.#notMoved(error);
          this.#moveIn(RETRY_MS);
        },
      );
    });
  }

  #notMoved(error: unknown): void {
    this.#deps.log.error('session files not written; the store keeps their entries', { error });
  }

  /** Of one session, or of all. */
  async move(aim: MoveAim, session?: SessionKey): Promise<Unwritten> {
    await this.#counted;
    const isShared = this.#deps.store.sharedEntries !== undefined;
    const isIdle = session === undefined ? this.#rows.size === 0 : !this.holds(session);
    if (isIdle && !isShared) return new Map();
    return this.#alone(() => this.#moveAll(aim, session));
  }

  /** Moves the rows of a session; then does something with its files before anybody else may. */
  async moveAnd(session: SessionKey, task: () => Promise<void>): Promise<void> {
    await this.#counted;
    await this.#alone(async () => {
      const unwritten = await this.#moveAll('synced', session);
      if (unwritten.has(session)) throw unwritten.get(session);
      await this.#deps.store.sharedEntries?.dropMoved(session);
      await task();
    });
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const { sharedEntries } = this.#deps.store;
    return this.#lanes.run('move', () => sharedEntries?.alone(work) ?? work());
  }

  /** @throws if the file of this session cannot be written */
  async moveOne(aim: MoveAim, session: SessionKey): Promise<void> {
    const unwritten = await this.move(aim, session);
    if (unwritten.has(session)) throw unwritten.get(session);
  }

  async #moveAll(aim: MoveAim, session: SessionKey | undefined): Promise<Unwritten> {
    const unwritten = new Map<SessionKey, unknown>();
    for (let after = 0; ; ) {
      const rows = await this.#deps.store.entries({ after, limit: BATCH_ROWS, session });
      const last = rows.at(-1);
      if (last === undefined) break;
      after = last.ord;
      for (const [key, error] of await this.#moveBatch(aim, rows)) unwritten.set(key, error);
      if (rows.length < BATCH_ROWS) break;
    }
    this.#report(unwritten, session);
    if (this.#deps.store.sharedEntries !== undefined) this.#forgetCounts(session, unwritten);
    return unwritten;
  }

  /** Another process may have moved rows that were counted here. */
  #forgetCounts(only: SessionKey | undefined, unwritten: Unwritten): void {
    for (const session of only === undefined ? [...this.#rows.keys()] : [only]) {
      if (!unwritten.has(session)) this.#rows.delete(session);
    }
  }

  #report(unwritten: Unwritten, only: SessionKey | undefined): void {
    for (const [session, error] of unwritten) {
      if (this.#unwritten.has(session)) continue;
      this.#unwritten.add(session);
      const said = 'session file not written; the store keeps its entries';
      this.#deps.log.error(said, { session, error });
    }
    const tried = only === undefined ? this.#unwritten : [only];
    for (const session of tried) if (!unwritten.has(session)) this.#unwritten.delete(session);
  }

  async #moveBatch(aim: MoveAim, rows: readonly EntryRow[]): Promise<Unwritten> {
    const { folder, store } = this.#deps;
    const unwritten = new Map<SessionKey, unknown>();
    const moved: EntryRow[] = [];
    await mapLimited([...Map.groupBy(rows, ({ file }) => file)], FILES_AT_ONCE, async ([, own]) => {
      const [first, ...rest] = own;
      if (first === undefined) return;
      try {
        moved.push(...(await this.#moveFile(aim, [first, ...rest])));
      } catch (error) {
        unwritten.set(first.session, error);
      }
    });
    if (aim === 'readable' || moved.length === 0) return unwritten;
    if (moved.some(({ place }) => place === 0)) await syncFolder(folder);
    await store.dropEntries(moved);
    for (const { session } of moved) this.#count(session, -1);
    return unwritten;
  }

  /** The rows with their final position in the file. */
  async #moveFile(aim: MoveAim, rows: Rows): Promise<readonly EntryRow[]> {
    const file = await this.#open(rows);
    if (file === undefined) return this.#moveFile(aim, await this.#displaced(rows));
    let misplaced: number;
    try {
      misplaced = rows.findIndex((row) => !write(file, row));
      if (aim === 'synced' && misplaced !== 0) await datasync(file);
    } finally {
      closeSync(file);
    }
    const [first, ...rest] = misplaced < 0 ? [] : rows.slice(misplaced);
    if (first === undefined) return rows;
    const others = await this.#moveFile(aim, await this.#displaced([first, ...rest]));
    return [...rows.slice(0, misplaced), ...others];
  }

  /** Undefined if the file was deleted: its session continued in no other. */
  async #open([{ file, place }]: Rows): Promise<number | undefined> {
    const path = join(this.#deps.folder, file);
    const name = parseName(file);
    if (place === 0 && name !== undefined && !existsSync(path)) await this.#deps.index.record(name);
    try {
      const flags = place === 0 ? constants.O_RDWR | constants.O_CREAT : constants.O_RDWR;
      return openSync(path, flags, FILE_MODE);
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return undefined;
      throw error;
    }
  }

  /**
   * The file differs from when these were committed, e.g. it comes from a back-up: they go to its
   * end. That is committed first, so that a kill does not write them twice.
   */
  async #displaced(rows: Rows): Promise<Rows> {
    const [{ file, session }] = rows;
    const path = join(this.#deps.folder, file);
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    this.#deps.log.warn('session file not as it was', { file });
    const lead = size === 0 ? await this.#header(file, session) : endOfLine(path, size);
    let place = size;
    const [first, ...rest] = rows.map((row, index) => {
      const moved = { ...row, place, text: index === 0 ? lead + row.text : row.text };
      place += Buffer.byteLength(moved.text);
      return moved;
    });
    const moved: Rows = [first ?? rows[0], ...rest];
    await this.#deps.store.changeEntries(moved);
    return moved;
  }

  async #header(file: string, key: SessionKey): Promise<string> {
    const stem = parseName(file)?.stem;
    const isBefore = (name: SessionFileName) => name.stem === stem && formatName(name) !== file;
    const last = (await sessionNames(this.#deps.folder, isBefore)).at(-1);
    const continues = last === undefined ? {} : { continues: formatName(last) };
    return `${encodeHeader({ key, createdAt: this.#deps.clock.now(), ...continues, carried: 0 })}\n`;
  }

  /** Moves what is left, if possible; otherwise the next process does. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#timer?.[Symbol.dispose]();
    await this.move('synced').catch((error) => this.#notMoved(error));
  }
}

/** For the only process in a home. */
export async function completeSessionFiles(
  deps: Omit<SessionJournalDeps, 'index'>,
): Promise<Unwritten> {
  const index = createNewestIndex(deps.folder, deps.log);
  const journal = new SessionJournal({ ...deps, index });
  return journal.move('synced').finally(() => journal[Symbol.asyncDispose]());
}

/** Those of the rows whose file this process cannot write either, for another one's journal. */
export function unwritableOf(folder: string, rows: readonly EntryRow[]): Unwritten {
  const unwritten = new Map<SessionKey, unknown>();
  for (const [file, [row]] of Map.groupBy(rows, (each) => each.file)) {
    try {
      closeSync(openSync(join(folder, file), constants.O_RDWR));
    } catch (error) {
      if (row !== undefined && systemCode(error) !== 'ENOENT') unwritten.set(row.session, error);
    }
  }
  return unwritten;
}

/**
 * Writes synchronously into the kernel's cache; the thread pool would take ten times as long. False
 * if something else is at that position.
 */
function write(file: number, { place, text }: EntryRow): boolean {
  const bytes = Buffer.from(text);
  const { size } = fstatSync(file);
  if (size < place) return false;
  const there = Buffer.alloc(Math.min(bytes.length, size - place));
  if (there.length > 0) readSync(file, there, 0, there.length, place);
  if (!there.equals(bytes.subarray(0, there.length))) return false;
  for (let at = there.length; at < bytes.length; ) {
    at += writeSync(file, bytes, at, bytes.length - at, place + at);
  }
  return true;
}

/** Ends an incomplete line; its content is set aside when the file is loaded. */
function endOfLine(path: string, size: number): string {
  const file = openSync(path, constants.O_RDONLY);
  try {
    const last = Buffer.alloc(1);
    readSync(file, last, 0, 1, size - 1);
    return last[0] === NEWLINE ? '' : '\n';
  } finally {
    closeSync(file);
  }
}

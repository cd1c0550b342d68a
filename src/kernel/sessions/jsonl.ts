// The session store: entries are rows of the store first and are moved into JSONL files behind the
// turns (journal.ts). One writer per session, daily files that rotate between turns. Hot sessions
// are served from memory; see load-tail.ts. maintenance.ts handles old files.

import { mkdirSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createLanes } from '../../lib/async.ts';
import { undefinedIfMissing } from '../../lib/files/files.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createDayText } from '../../lib/time/zone-time.ts';
import {
  type EntryRow,
  type EntryRows,
  type NewEntryRow,
  type SharedEntries,
  StaleEntriesError,
  StoreError,
} from '../bus/store/store.ts';
import { SessionError } from '../message/errors.ts';
import type { MessageId, SessionKey, TurnId } from '../message/ids.ts';
import type { TranscriptEntry } from '../message/transcript.ts';
import { readEarlier } from './earlier.ts';
import { type FileScan, scanFile, stemOf } from './file-lines.ts';
import type { SessionFiles } from './forget.ts';
import { createNewestIndex, type NewestIndex } from './index-file.ts';
import { SessionJournal, type Unwritten } from './journal.ts';
import { loadTail, openingText, SessionTail, tailOfRows } from './load-tail.ts';
import {
  carryOver,
  type HeldPoint,
  isRotationDue,
  pointsIn,
  type RestorePoint,
  type SessionPolicy,
  startsTurn,
  withRestored,
} from './rules/carry.ts';
import type { EarlierQuestion, EarlierTurns } from './rules/earlier.ts';
import { formatName, parseName, type SessionFileName } from './rules/file.ts';
import type { AppendOptions, SessionStore, TurnEntries } from './store.ts';

type JsonlSessionStoreDeps = {
  readonly folder: string;
  /** Holds entries until they are in their files. */
  readonly store: EntryRows;
  readonly clock: Clock;
  readonly log: Logger;
  /** Read at every append, so that a changed configuration applies from the next turn on. */
  readonly policy: () => SessionPolicy;
};

/** Of a write, while other processes write to the same conversation. */
const MAX_TRIES = 50;
const HOT_LIMITS = { maxTails: 2000, maxBytes: 32_000_000 };

/** Creates the folder when it is missing. */
export function createJsonlSessionStore(
  deps: JsonlSessionStoreDeps,
): SessionStore & SessionFiles & TurnEntries {
  mkdirSync(deps.folder, { recursive: true, mode: 0o700 });
  return new JsonlSessionStore(deps);
}

class JsonlSessionStore implements SessionStore, SessionFiles, TurnEntries {
  readonly #deps: JsonlSessionStoreDeps;
  readonly #lanes = createLanes();
  readonly #hot = createHotTails(HOT_LIMITS);
  readonly #index: NewestIndex;
  readonly #journal: SessionJournal;
  readonly #today: () => string;
  readonly #running = new Set<Promise<unknown>>();
  readonly #shared: SharedEntries | undefined;

  constructor(deps: JsonlSessionStoreDeps) {
    this.#deps = deps;
    this.#shared = deps.store.sharedEntries;
    this.#index = createNewestIndex(deps.folder, deps.log);
    this.#journal = new SessionJournal({ ...deps, index: this.#index });
    this.#today = createToday(deps);
  }

  get folder(): string {
    return this.#deps.folder;
  }

  load(key: SessionKey, forNextTurn?: 'forNextTurn'): Promise<readonly TranscriptEntry[]> {
    return this.#inLane(key, async () => {
      await this.#forgetIfChanged(key);
      const tail = await this.#tailOf(key);
      const isCarried = forNextTurn !== undefined && this.#isRotationDue(tail);
      return isCarried ? carryOver(tail.window, this.#deps.policy()) : [...tail.window];
    });
  }

  append(
    key: SessionKey,
    entries: readonly TranscriptEntry[],
    { durable, epoch }: AppendOptions,
  ): Promise<readonly TranscriptEntry[]> {
    return this.#inLane(key, async () => {
      await this.#append(key, entries, epoch);
      if (durable) await this.#commit(key);
      return entries;
    });
  }

  appendIf(
    key: SessionKey,
    entries: readonly TranscriptEntry[],
    isTrue: (window: readonly TranscriptEntry[]) => boolean,
  ): Promise<boolean> {
    return this.#inLane(key, async () => {
      await this.#forgetIfChanged(key);
      if (!isTrue((await this.#tailOf(key)).window)) return false;
      await this.#append(key, entries, undefined);
      await this.#commit(key);
      return true;
    });
  }

  endTurn(
    key: SessionKey,
    write: (entries: readonly NewEntryRow[]) => Promise<'ended' | 'lost'>,
  ): Promise<'ended' | 'lost'> {
    return this.#inLane(key, async () => {
      let ended: 'ended' | 'lost' | undefined;
      await this.#written(key, async (row) => {
        ended = await write(row === undefined ? [] : [row]);
        return ended === 'ended';
      });
      return ended ?? 'lost';
    });
  }

  earlier(key: SessionKey, question: EarlierQuestion): Promise<EarlierTurns> {
    const newest = this.#inLane(key, () => this.#newestFile(key));
    return newest.then((name) => readEarlier(this.#deps.folder, name, question));
  }

  restorePoints(key: SessionKey, maxPoints: number): Promise<readonly RestorePoint[]> {
    return this.#inLane(key, async () =>
      findPoints(this.#deps.folder, await this.#newestFile(key), maxPoints),
    );
  }

  restore(key: SessionKey, index: number, by: MessageId) {
    return this.#inLane(key, async () => {
      await this.#forgetIfChanged(key);
      const newest = await this.#newestFile(key);
      const before = await this.#tailOf(key);
      const isDone = before.window.some((entry) => entry.role === 'restore' && entry.by === by);
      if (isDone) return 'done before';
      const points = await findPoints(this.#deps.folder, newest, index + 1);
      const point = points[index];
      if (point === undefined) return undefined;
      const carried = withRestored(before.window, point, by, this.#deps.clock.now());
      this.#rotate(key, before, carried);
      await this.#commit(key);
      return point;
    });
  }

  turn(key: SessionKey, id: TurnId): Promise<readonly TranscriptEntry[]> {
    return this.#inLane(key, async () => {
      if (this.#shared !== undefined) await this.#forgetIfChanged(key);
      return [...((await this.#tailOf(key)).turn(id) ?? [])];
    });
  }

  readonly complete = (): Promise<Unwritten> => this.#journal.move('synced');

  readonly exclusively = (key: SessionKey, task: () => Promise<void>): Promise<void> =>
    this.#inLane(key, async () => {
      await this.#commit(key);
      await this.#journal.moveAnd(key, () => task().finally(() => this.#hot.forget(key)));
    });

  /** Waits for pending calls. Entries that no end of a turn wrote are written now. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#running);
    await Promise.allSettled(this.#hot.ahead().map((key) => this.#commit(key)));
    await this.#journal[Symbol.asyncDispose]();
    await this.#index[Symbol.asyncDispose]();
  }

  /** One writer per session; after a failure the committed state is read again. */
  #inLane<T>(key: SessionKey, task: () => Promise<T>): Promise<T> {
    const result = this.#lanes.run(key, async () => {
      try {
        return await task();
      } catch (cause) {
        if (this.#hot.get(key)?.ahead === undefined) this.#hot.forget(key);
        if (cause instanceof StoreError || cause instanceof SessionError) throw cause;
        throw new SessionError('session file not usable', { cause });
      }
    });
    this.#running.add(result);
    const done = () => void this.#running.delete(result);
    result.then(done, done);
    return result;
  }

  async #tailOf(key: SessionKey): Promise<SessionTail> {
    const known = this.#hot.get(key);
    if (known !== undefined) return known;
    const tail =
      this.#shared === undefined
        ? await this.#journal.moveOne('readable', key).then(() => this.#tailInFile(key))
        : await this.#sharedTail(key, this.#shared);
    this.#hot.put(key, tail);
    return tail;
  }

  #tailInFile(key: SessionKey): Promise<SessionTail> {
    const { folder, log } = this.#deps;
    return loadTail({ folder, log, index: this.#index }, stemOf(key), this.#today());
  }

  /** Of rows alone; a conversation that is only in its file is taken in first. */
  async #sharedTail(key: SessionKey, shared: SharedEntries): Promise<SessionTail> {
    const { folder } = this.#deps;
    const rows = await shared.rows(key);
    const begun = wholeFile(rows);
    const isNew =
      rows.length === 0 && (await this.#index.find(stemOf(key), this.#today())) === undefined;
    if (begun.length > 0 || isNew) return tailOfRows(folder, begun);
    await this.#journal.moveAnd(key, async () => {
      const { end } = await this.#tailInFile(key);
      if (end === undefined) return;
      const file = formatName(end.name);
      const bytes = await readFile(join(folder, file));
      const text = bytes.subarray(0, end.size).toString('utf8');
      await shared.adopt({ session: key, file, place: 0, text });
    });
    return tailOfRows(folder, wholeFile(await shared.rows(key)));
  }

  /** Including everything that was appended. */
  async #newestFile(key: SessionKey): Promise<SessionFileName | undefined> {
    const { end } = await this.#tailOf(key);
    await this.#commit(key);
    await this.#journal.moveOne('readable', key);
    return end?.name;
  }

  /** Another process may have purged the file meanwhile, or of several one may have written. */
  async #forgetIfChanged(key: SessionKey): Promise<void> {
    const tail = this.#hot.get(key);
    if (this.#shared !== undefined) {
      if (tail === undefined || tail.ahead !== undefined) return;
      const end = await this.#shared.end(key);
      const known = tail.end && { file: formatName(tail.end.name), size: tail.end.size };
      if (end?.file !== known?.file || end?.size !== known?.size) this.#hot.forget(key);
      return;
    }
    if (tail?.end === undefined || tail.ahead !== undefined || this.#journal.holds(key)) return;
    const path = join(this.#deps.folder, formatName(tail.end.name));
    const found = statSync(path, { throwIfNoEntry: false });
    if (found?.size !== tail.end.size) this.#hot.forget(key);
  }

  /** Visible at once; on disk with the next commit. */
  async #append(
    key: SessionKey,
    entries: readonly TranscriptEntry[],
    epoch: number | undefined,
  ): Promise<void> {
    const [first] = entries;
    if (first === undefined) return;
    let tail = await this.#tailOf(key);
    if (this.#mustRotate(tail, first)) {
      await this.#commit(key);
      tail = this.#rotate(key, tail, carryOver(tail.window, this.#deps.policy()));
    }
    tail.append(entries, epoch);
    this.#hot.put(key, tail);
  }

  async #commit(key: SessionKey): Promise<void> {
    const { store } = this.#deps;
    const isWritten = await this.#written(key, async (row, epoch) =>
      row === undefined ? true : store.writeEntries([row], epoch),
    );
    if (!isWritten) throw new SessionError('the turn has lost its session');
  }

  /** Passes to `write` what is not committed yet, again behind what another process wrote first. */
  async #written(
    key: SessionKey,
    write: (row: NewEntryRow | undefined, epoch: number | undefined) => Promise<boolean>,
  ): Promise<boolean> {
    for (let tries = 1; ; tries += 1) {
      const tail = this.#hot.get(key);
      const ahead = tail?.ahead;
      const row = ahead && { session: key, ...ahead.lines };
      try {
        const isWritten = await write(row, ahead?.epoch);
        if (ahead === undefined) return isWritten;
        if (isWritten) {
          tail?.committed();
          this.#journal.added(key, 1);
        } else {
          this.#hot.forget(key);
        }
        return isWritten;
      } catch (error) {
        if (!(error instanceof StaleEntriesError) || ahead === undefined) throw error;
        this.#hot.forget(key);
        if (ahead.entries.length === 0 || tries > MAX_TRIES) throw error;
        await this.#append(key, ahead.entries, ahead.epoch);
      }
    }
  }

  #mustRotate(tail: SessionTail, entry: TranscriptEntry): boolean {
    if (tail.end === undefined) return true;
    return startsTurn(entry, (id) => tail.turn(id) !== undefined) && this.#isRotationDue(tail);
  }

  #isRotationDue({ end }: SessionTail): boolean {
    if (end === undefined) return false;
    const { name, growth } = end;
    return isRotationDue(name.day, this.#today(), growth, this.#deps.policy());
  }

  #rotate(key: SessionKey, before: SessionTail, carried: readonly TranscriptEntry[]): SessionTail {
    const day = this.#today();
    const last = before.end?.name;
    const isLater = last !== undefined && last.day >= day;
    const name = isLater ? { ...last, part: last.part + 1 } : { stem: stemOf(key), day, part: 1 };
    const createdAt = this.#deps.clock.now();
    const opening = openingText({ key, createdAt, continues: last, carried });
    const end = { name, size: Buffer.byteLength(opening), growth: { bytes: 0, tokens: 0 } };
    const after = before.end && { file: formatName(before.end.name), size: before.end.size };
    const content = { end, carried, own: [], turnBefore: before.lastTurn, opening, after };
    const tail = new SessionTail(content);
    this.#hot.put(key, tail);
    return tail;
  }
}

/** The rows, unless their newest file began before its rows were kept. */
function wholeFile(rows: readonly EntryRow[]): readonly EntryRow[] {
  const newest = rows.at(-1)?.file;
  return rows.find(({ file }) => file === newest)?.place === 0 ? rows : [];
}

/** The calendar day in the configured zone, which may change while running. */
function createToday(deps: Pick<JsonlSessionStoreDeps, 'clock' | 'policy'>): () => string {
  const dayOf = createDayText();
  return () => dayOf(deps.clock.now(), deps.policy().timeZone);
}

// Finds in a conversation's files what was hidden from its view, from the newest file back. The
// number of files opened for one question is bounded.

const MAX_FILES = 20;

/** Newest first; leaves out what is visible again. */
async function findPoints(
  folder: string,
  newest: SessionFileName | undefined,
  maxPoints: number,
): Promise<readonly HeldPoint[]> {
  const back = new Set<string>();
  const found: HeldPoint[] = [];
  let name = newest;
  for (let files = 0; name !== undefined && files < MAX_FILES; files += 1) {
    const path = join(folder, formatName(name));
    const scan: FileScan | undefined = await scanFile(path).catch(undefinedIfMissing);
    if (scan === undefined) break;
    const { carried, own, header } = scan;
    for (const entry of [...carried, ...own]) if (entry.role === 'restore') back.add(entry.brings);
    found.push(...pointsIn(carried, own).toReversed());
    if (found.filter(({ id }) => !back.has(id)).length >= maxPoints) break;
    name = header?.continues === undefined ? undefined : parseName(header.continues);
  }
  return found.filter(({ id }) => !back.has(id)).slice(0, maxPoints);
}

// The tails of the most recently used sessions, bounded in number and in bytes of their files.

type HotLimits = { readonly maxTails: number; readonly maxBytes: number };

type Held = { readonly tail: SessionTail; readonly bytes: number };

function createHotTails(limits: HotLimits) {
  const held = new Map<SessionKey, Held>();
  let totalBytes = 0;

  function forget(key: SessionKey) {
    totalBytes -= held.get(key)?.bytes ?? 0;
    held.delete(key);
  }

  return {
    get: (key: SessionKey) => held.get(key)?.tail,
    /** Those with uncommitted entries. */
    ahead: () => [...held].flatMap(([key, { tail }]) => (tail.ahead === undefined ? [] : key)),
    /**
     * Also called after each append, so that the tail's new size counts. Uncommitted tails stay.
     */
    put(key: SessionKey, tail: SessionTail): void {
      forget(key);
      const bytes = tail.end?.size ?? 0;
      held.set(key, { tail, bytes });
      totalBytes += bytes;
      for (const [oldest, { tail: other }] of held) {
        if (held.size <= limits.maxTails && totalBytes <= limits.maxBytes) return;
        if (oldest !== key && other.ahead === undefined) forget(oldest);
      }
    },
    forget,
  };
}

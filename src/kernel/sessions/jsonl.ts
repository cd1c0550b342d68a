// The session store on JSONL files: append-only, one writer, daily files that rotate between turns.
// Hot sessions are answered from memory; see tail.ts. Care of old files is left to maintenance.

import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createLanes } from '../../lib/async.ts';
import { syncFolder } from '../../lib/files/files.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createDayText } from '../../lib/time/zone-time.ts';
import { SessionError } from '../message/errors.ts';
import type { MessageId, SessionKey, TurnId } from '../message/ids.ts';
import type { TranscriptEntry } from '../message/transcript.ts';
import { readEarlier } from './earlier.ts';
import { type FileScan, orUndefined, scanFile, stemOf } from './file-lines.ts';
import type { SessionForgetting } from './forget.ts';
import { createNewestIndex, type NewestIndex } from './index-file.ts';
import {
  appendEntries,
  beginFile,
  createOpenFiles,
  type FileEnd,
  loadTail,
  SessionTail,
} from './load-tail.ts';
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
import { type EarlierQuestion, type EarlierTurns, withoutWhole } from './rules/earlier.ts';
import { formatName, parseName, type SessionFileName } from './rules/file.ts';
import type { SessionStore } from './store.ts';

export type JsonlSessionStoreDeps = {
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Asked at every append, so that a changed configuration holds from the next turn on. */
  readonly policy: () => SessionPolicy;
};

const HOT_LIMITS = { maxTails: 2000, maxBytes: 32_000_000 };
/** Few enough for a process that may have 256 files open. */
const MAX_OPEN_FILES = 64;

/** Creates the folder when it is missing. */
export function createJsonlSessionStore(
  deps: JsonlSessionStoreDeps,
): SessionStore & Pick<SessionForgetting, 'exclusively'> {
  mkdirSync(deps.folder, { recursive: true, mode: 0o700 });
  return new JsonlSessionStore(deps);
}

class JsonlSessionStore implements SessionStore {
  readonly #deps: JsonlSessionStoreDeps;
  readonly #lanes = createLanes();
  readonly #hot = createHotTails(HOT_LIMITS);
  readonly #files = createOpenFiles(MAX_OPEN_FILES);
  readonly #index: NewestIndex;
  readonly #syncNames: () => Promise<void>;
  /** Sessions whose newest file has a name that is not on the disk for sure. */
  readonly #unsyncedNames = new Set<SessionKey>();
  readonly #today: () => string;
  readonly #running = new Set<Promise<unknown>>();

  constructor(deps: JsonlSessionStoreDeps) {
    this.#deps = deps;
    this.#index = createNewestIndex(deps.folder, deps.log);
    this.#syncNames = shareRuns(() => syncFolder(deps.folder));
    this.#today = createToday(deps);
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
    { durable }: { readonly durable: boolean },
  ): Promise<readonly TranscriptEntry[]> {
    return this.#inLane(key, async () => {
      await this.#append(key, entries, durable);
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
      await this.#append(key, entries, true);
      return true;
    });
  }

  async earlier(key: SessionKey, question: EarlierQuestion): Promise<EarlierTurns> {
    const newest = await this.#inLane(key, async () => (await this.#tailOf(key)).end?.name);
    return readEarlier(this.#deps.folder, newest, question);
  }

  restorePoints(key: SessionKey, maxPoints: number): Promise<readonly RestorePoint[]> {
    return this.#inLane(key, async () =>
      findPoints(this.#deps.folder, (await this.#tailOf(key)).end?.name, maxPoints),
    );
  }

  restore(key: SessionKey, index: number, by: MessageId) {
    return this.#inLane(key, async () => {
      await this.#forgetIfChanged(key);
      const before = await this.#tailOf(key);
      const isDone = before.window.some((entry) => entry.role === 'restore' && entry.by === by);
      if (isDone) return 'done before';
      const points = await findPoints(this.#deps.folder, before.end?.name, index + 1);
      const point = points[index];
      if (point === undefined) return undefined;
      const carried = withRestored(before.window, point, by, this.#deps.clock.now());
      await this.#begin(key, before, carried);
      return point;
    });
  }

  /** A new file at once: what it opens with is in view whole, or the file counts for nothing. */
  async #begin(key: SessionKey, before: SessionTail, carried: readonly TranscriptEntry[]) {
    const tail = await this.#rotate(key, before, carried);
    this.#hot.put(key, tail);
    if (tail.end === undefined) return;
    await this.#files.use(this.#pathOf(tail.end), (file) => file.datasync());
    await this.#syncNames();
    this.#unsyncedNames.delete(key);
  }

  turn(key: SessionKey, id: TurnId): Promise<readonly TranscriptEntry[]> {
    return this.#inLane(key, async () => [...((await this.#tailOf(key)).turn(id) ?? [])]);
  }

  exclusively(key: SessionKey, task: () => Promise<void>): Promise<void> {
    return this.#inLane(key, async () => {
      const { end } = await this.#tailOf(key);
      if (end !== undefined) await this.#files.close(this.#pathOf(end));
      await task().finally(() => this.#hot.forget(key));
    });
  }

  /** Waits for what was asked before. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#running);
    await this.#index[Symbol.asyncDispose]();
    await this.#files[Symbol.asyncDispose]();
  }

  /** One writer per session; after a failure the session is read anew from the disk. */
  #inLane<T>(key: SessionKey, task: () => Promise<T>): Promise<T> {
    const result = this.#lanes.run(key, async () => {
      try {
        return await task();
      } catch (cause) {
        this.#hot.forget(key);
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
    const { folder, log } = this.#deps;
    const source = { folder, log, index: this.#index };
    const tail = await loadTail(source, stemOf(key), this.#today());
    this.#hot.put(key, tail);
    return tail;
  }

  /** Another process may have purged the file meanwhile. */
  async #forgetIfChanged(key: SessionKey): Promise<void> {
    const end = this.#hot.get(key)?.end;
    if (end === undefined) return;
    const path = this.#pathOf(end);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found?.size === end.size) return;
    this.#hot.forget(key);
    await this.#files.close(path);
  }

  async #append(
    key: SessionKey,
    entries: readonly TranscriptEntry[],
    durable: boolean,
  ): Promise<void> {
    const [first] = entries;
    if (first === undefined) return;
    const known = await this.#tailOf(key);
    const tail = this.#mustRotate(known, first)
      ? await this.#rotate(key, known, carryOver(known.window, this.#deps.policy()))
      : known;
    if (tail.end === undefined) return;
    const path = this.#pathOf(tail.end);
    const bytes = await appendEntries(this.#files, path, tail.end.size, entries, durable);
    tail.appended(entries.map(withoutWhole), bytes);
    this.#hot.put(key, tail);
    if (!durable || !this.#unsyncedNames.has(key)) return;
    await this.#syncNames();
    this.#unsyncedNames.delete(key);
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

  async #rotate(
    key: SessionKey,
    before: SessionTail,
    carried: readonly TranscriptEntry[],
  ): Promise<SessionTail> {
    const { folder, clock } = this.#deps;
    const day = this.#today();
    const last = before.end?.name;
    const isLater = last !== undefined && last.day >= day;
    const wanted = isLater ? { ...last, part: last.part + 1 } : { stem: stemOf(key), day, part: 1 };
    const opening = { key, createdAt: clock.now(), continues: last, carried };
    await this.#index.record(wanted);
    const end = await beginFile(folder, wanted, opening);
    if (end.name.part !== wanted.part) await this.#index.record(end.name);
    if (before.end !== undefined) await this.#files.close(this.#pathOf(before.end));
    this.#unsyncedNames.add(key);
    return new SessionTail({ end, carried, own: [], turnBefore: before.lastTurn });
  }

  #pathOf(end: FileEnd): string {
    return join(this.#deps.folder, formatName(end.name));
  }
}

/** The calendar day in the configured zone, which may change while running. */
function createToday(deps: Pick<JsonlSessionStoreDeps, 'clock' | 'policy'>): () => string {
  const dayOf = createDayText();
  return () => dayOf(deps.clock.now(), deps.policy().timeZone);
}

// Finds in a conversation's files what was taken out of its view, from the newest file back. The number
// of files one question opens is bounded.

const MAX_FILES = 20;

/** Newest first; what is in view again is left out. */
export async function findPoints(
  folder: string,
  newest: SessionFileName | undefined,
  maxPoints: number,
): Promise<readonly HeldPoint[]> {
  const back = new Set<string>();
  const found: HeldPoint[] = [];
  let name = newest;
  for (let files = 0; name !== undefined && files < MAX_FILES; files += 1) {
    const path = join(folder, formatName(name));
    const scan: FileScan | undefined = await scanFile(path).catch(orUndefined('ENOENT'));
    if (scan === undefined) break;
    const { carried, own, header } = scan;
    for (const entry of [...carried, ...own]) if (entry.role === 'restore') back.add(entry.brings);
    found.push(...pointsIn(carried, own).toReversed());
    if (found.filter(({ id }) => !back.has(id)).length >= maxPoints) break;
    name = header?.continues === undefined ? undefined : parseName(header.continues);
  }
  return found.filter(({ id }) => !back.has(id)).slice(0, maxPoints);
}

// The tails of the sessions used last, bounded in number and in bytes of their files.

type HotLimits = { readonly maxTails: number; readonly maxBytes: number };

type Held = { readonly tail: SessionTail; readonly bytes: number };

export function createHotTails(limits: HotLimits) {
  const held = new Map<SessionKey, Held>();
  let totalBytes = 0;

  function forget(key: SessionKey) {
    totalBytes -= held.get(key)?.bytes ?? 0;
    held.delete(key);
  }

  return {
    get: (key: SessionKey) => held.get(key)?.tail,
    /** Also after each append, so that the tail's new size counts. */
    put(key: SessionKey, tail: SessionTail): void {
      forget(key);
      const bytes = tail.end?.size ?? 0;
      held.set(key, { tail, bytes });
      totalBytes += bytes;
      for (const oldest of held.keys()) {
        if (held.size <= limits.maxTails && totalBytes <= limits.maxBytes) return;
        if (oldest !== key) forget(oldest);
      }
    },
    forget,
  };
}

// Joins callers that want the same work: who comes while it runs waits for one more run, which
// began after they asked. Many new session files then cost few syncs of their folder.

/** The returned function resolves after a run that began after the call. */
export function shareRuns(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  function start(): Promise<void> {
    next = undefined;
    const run = work().finally(() => {
      if (running === run) running = undefined;
    });
    running = run;
    return run;
  }

  return () => {
    if (running === undefined) return start();
    next ??= running.then(start, start);
    return next;
  };
}

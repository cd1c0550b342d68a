// Working memory: the note of one conversation, written with each summary, in the notes of its
// person. `active` while the conversation goes on, and given to the model where its history does
// not contain it; `completed` after a reset, 15 turns without an update or an hour in which only
// another conversation went on; `archived` once a reflection has used it.

import { hash } from 'node:crypto';
import { join } from 'node:path';
import { partsOf } from '../../agent/rules/context-marks.ts';
import { firstSeqOf, type SessionKey } from '../../kernel/message/ids.ts';
import type { ToolEntry, TranscriptEntry } from '../../kernel/message/transcript.ts';
import type { TurnPerson } from '../../kernel/message/untrusted.ts';
import { turnOf } from '../../kernel/sessions/rules/carry.ts';
import { isoTime } from '../../kernel/sessions/rules/file.ts';
import { createLanes, RecentMap } from '../../lib/async.ts';
import { fileStamp } from '../../lib/files/files.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import {
  type Learning,
  listFiles,
  MAX_NOTE_BYTES,
  type MemoryStore,
  type NoteReader,
  readNote,
  SESSION_NOTE,
  SESSIONS_FOLDER,
} from './notes.ts';
import {
  readWorkingMemory,
  type WorkingMemory,
  type WorkingNote,
  type WorkingStatus,
  workingMemoryText,
} from './rules/memory-notes.ts';

type WorkingMemoryDeps = NoteReader & { readonly clock: Clock };

export type WorkingMemories = ReturnType<typeof createWorkingMemories>;

export type Summary = {
  readonly text: string;
  readonly throughTurn: number;
  readonly isForeign: boolean;
};
export type StoredWorkingMemory = WorkingMemory & { readonly path: string };

/** An active note. */
type Life = {
  readonly touchedAt: number;
  /** Turns since it was written; undefined: to be counted in the history. */
  readonly turns: number | undefined;
};
type Known = { readonly stamp: string; readonly memory: StoredWorkingMemory | undefined };

const IDLE_MS = 3_600_000;
const MAX_TURNS = 15;
const MAX_KNOWN = 64;
const HASH_CHARS = 8;

export function createWorkingMemories(deps: WorkingMemoryDeps) {
  const { files, workspace, clock } = deps;
  const now = () => isoTime(clock.now());
  /** Known active notes by path. */
  const lives = new Map<string, Life>();
  /** Notes folders whose active notes are all in `lives`. */
  const looked = new Set<string>();
  /** By path, for the turns of sessions that have one. */
  const known = new RecentMap<string, Known>(MAX_KNOWN);

  async function change(
    path: string,
    next: (before: WorkingMemory | undefined) => WorkingMemory | undefined,
  ) {
    const update = (content: Buffer | undefined) => {
      const before =
        content === undefined ? undefined : readWorkingMemory(content.toString('utf8'));
      const after = next(before);
      return after === undefined ? undefined : workingMemoryText(after);
    };
    await files.update(workspace(), path, update, { maxBytes: MAX_NOTE_BYTES });
  }

  async function setStatus(path: string, status: WorkingStatus): Promise<void> {
    lives.delete(path);
    await change(path, (before) =>
      before === undefined || before.status === 'archived' ? undefined : { ...before, status },
    );
  }

  /** Read again only when the file has changed. */
  async function current(notes: string, session: string) {
    const path = pathOf(notes, session);
    const stamp = await fileStamp(join(workspace(), path));
    if (stamp === undefined) return undefined;
    const before = known.get(path);
    if (before?.stamp === stamp) return before.memory;
    const read = readWorkingMemory((await readNote(deps, path))?.text ?? '');
    // The name is a short hash, so the session key in the file decides.
    const memory = read?.sessionKey === session ? { ...read, path } : undefined;
    known.set(path, { stamp, memory });
    return memory;
  }

  async function lookOnce(notes: string) {
    if (looked.has(notes)) return;
    looked.add(notes);
    for (const { path, status, updated } of await all(notes)) {
      if (status !== 'active' || lives.has(path)) continue;
      lives.set(path, { touchedAt: Date.parse(updated) || 0, turns: undefined });
    }
  }

  async function all(notes: string): Promise<readonly StoredWorkingMemory[]> {
    const found = await listFiles(deps, notes + SESSIONS_FOLDER, (name) => SESSION_NOTE.test(name));
    const oldestFirst = [...found].sort((a, b) => a.modifiedAt - b.modifiedAt);
    const memories: StoredWorkingMemory[] = [];
    for (const { path } of oldestFirst) {
      const memory = readWorkingMemory((await readNote(deps, path))?.text ?? '');
      if (memory !== undefined) memories.push({ ...memory, path });
    }
    return memories;
  }

  return {
    async write(notes: string, session: string, { text, throughTurn, isForeign }: Summary) {
      const path = pathOf(notes, session);
      await change(path, (before) => ({
        sessionKey: session,
        created: before?.created ?? now(),
        updated: now(),
        status: 'active',
        lastUpdatedTurn: throughTurn,
        isForeign,
        body: text,
      }));
      lives.set(path, { touchedAt: clock.now(), turns: 0 });
    },
    /**
     * Called after a turn: completes this note and others of the same folder whose time is over.
     */
    async turned(notes: string, session: string): Promise<void> {
      await lookOnce(notes);
      if (lives.size === 0) return;
      const own = pathOf(notes, session);
      const life = lives.get(own);
      const turns = (life?.turns ?? 0) + 1;
      if (life !== undefined) lives.set(own, { touchedAt: clock.now(), turns });
      const isOver = ([path, { touchedAt }]: readonly [string, Life]) =>
        path === own ? turns >= MAX_TURNS : clock.now() - touchedAt >= IDLE_MS;
      const theirs = [...lives].filter(([path]) => path.startsWith(notes + SESSIONS_FOLDER));
      for (const [path] of theirs.filter(isOver)) await setStatus(path, 'completed');
    },
    /** For the next turn; undefined where a summary in the history contains the same. */
    async standing(
      notes: string,
      session: string,
      history: readonly TranscriptEntry[],
    ): Promise<WorkingNote | undefined> {
      const memory = await current(notes, session);
      if (memory?.status !== 'active') return undefined;
      const { path, body, isForeign } = memory;
      const life = lives.get(path);
      const turns = life?.turns ?? turnsSince(history, Date.parse(memory.updated));
      if (life?.turns === undefined) lives.set(path, { touchedAt: clock.now(), turns });
      if (turns >= MAX_TURNS || body.trim() === '' || isTold(history, body)) return undefined;
      return { path, body, isForeign };
    },
    /** Whatever its status. */
    of: current,
    /** Does nothing where the session has none. */
    complete: (notes: string, session: string) => setStatus(pathOf(notes, session), 'completed'),
    /** With this status, oldest first. */
    list: async (notes: string, status: WorkingStatus) =>
      (await all(notes)).filter((each) => each.status === status),
    async archive(paths: readonly string[]): Promise<void> {
      for (const path of paths) await setStatus(path, 'archived');
    },
  };
}

/**
 * Whether the view contains the part of a summary that it was made from, alone or joined to
 * another.
 */
const isTold = (history: readonly TranscriptEntry[], body: string) =>
  history.some(
    (entry) =>
      entry.role === 'summary' &&
      [entry.text, entry.untrusted ?? ''].some((text) => text.includes(body.trim())),
  );

function turnsSince(history: readonly TranscriptEntry[], at: number): number {
  const later = history.filter((entry) => entry.role === 'user' && entry.at > at);
  return new Set(later.map(turnOf)).size;
}

function pathOf(notes: string, session: string): string {
  const short = hash('sha256', session).slice(0, HASH_CHARS);
  return `${notes}${SESSIONS_FOLDER}/SESSION_${short}.md`;
}

// Makes notes from recorded conversations, after the turn and without delaying it: working memory
// from summaries, learnings from failed tools and from thumbs down. Only names and kinds: the
// output of a tool may be untrusted content.

type SessionWatchDeps = {
  readonly memory: Pick<MemoryStore, 'learn'>;
  readonly working: WorkingMemories;
  readonly log: Logger;
  readonly isEnabled: () => boolean;
  /** Its working memory must not be used in other conversations. */
  staysIn(session: SessionKey): Promise<boolean>;
};

const MAX_SESSIONS = 2000;
const DISLIKED = /\[reacted with 👎\p{Emoji_Modifier}? to your answer /u;

type WatchedSession = {
  readonly person: TurnPerson;
  /** Tools that failed in the turn, with the reason. */
  failed: Map<string, string>;
};

export type SessionWatch = ReturnType<typeof createSessionWatch>;

export function createSessionWatch(deps: SessionWatchDeps) {
  const { memory, working, log } = deps;
  const known = new RecentMap<SessionKey, WatchedSession>(MAX_SESSIONS);
  const lanes = createLanes();
  const running = new Set<Promise<unknown>>();

  function behind(notes: string, task: () => Promise<void>) {
    const work = lanes
      .run(notes, task)
      .catch((error: unknown) => log.warn('working memory not written', { error }));
    running.add(work);
    void work.finally(() => running.delete(work));
  }

  function take(session: SessionKey, { person, failed }: WatchedSession, entry: TranscriptEntry) {
    const { notes } = person;
    if (entry.role === 'reset') behind(notes, () => working.complete(notes, session));
    if (entry.role === 'summary' && entry.omitted === undefined) {
      const keepsFrom = entry.keepsFrom === undefined ? 0 : (firstSeqOf(entry.keepsFrom) ?? 0);
      const { trusted, untrusted } = partsOf(entry);
      const isForeign = trusted.trim() === '';
      const text = isForeign ? untrusted : trusted;
      const summary = { text, throughTurn: Math.max(0, keepsFrom - 1), isForeign };
      behind(notes, async () => {
        if (!(await deps.staysIn(session))) await working.write(notes, session, summary);
      });
    }
    if (entry.role === 'turn_end') {
      failed.clear();
      behind(notes, () => working.turned(notes, session));
    }
    const learnt = learningOf(entry, failed);
    if (learnt !== undefined) behind(notes, () => memory.learn([learnt], person));
  }

  /** Resolves when earlier entries are in the notes. */
  async function settled(): Promise<void> {
    await Promise.allSettled(running);
  }

  return {
    /** Sets whose session it is. */
    opened(session: SessionKey, person: TurnPerson): void {
      if (known.get(session)?.person.notes === person.notes) return;
      known.set(session, { person, failed: new Map() });
    },
    appended(session: SessionKey, entries: readonly TranscriptEntry[]): void {
      const whose = known.get(session);
      if (whose === undefined || !deps.isEnabled()) return;
      for (const entry of entries) take(session, whose, entry);
    },
    settled,
    [Symbol.asyncDispose]: settled,
  };
}

function learningOf(entry: TranscriptEntry, failed: Map<string, string>): Learning | undefined {
  if (entry.role === 'user' && entry.isForeign !== true && DISLIKED.test(entry.text)) {
    return { kind: 'reaction', succeeded: false, context: 'an answer was disliked' };
  }
  return entry.role === 'tool' ? toolLearning(entry, failed) : undefined;
}

const NOT_LEARNT: readonly string[] = ['permission', 'waiting', 'cancelled'];

function toolLearning(
  { name, status, failure, isBlocked }: ToolEntry,
  failed: Map<string, string>,
): Learning | undefined {
  if (isBlocked === true || (failure !== undefined && NOT_LEARNT.includes(failure)))
    return undefined;
  const tool = { kind: 'tool', tool: name } as const;
  if (status === 'failed') {
    const error = failure ?? 'execution';
    failed.set(name, error);
    return { ...tool, succeeded: false, context: 'failed', error };
  }
  const why = failed.get(name);
  if (status !== 'ok' || why === undefined) return undefined;
  failed.delete(name);
  return { ...tool, succeeded: true, context: `worked after it had failed: ${why}` };
}

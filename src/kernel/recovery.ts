// Rebuilds a damaged state.db: from what can be read of it, the snapshots and the conversations on
// the disk (docs/adr/0036). Nothing is answered, sent or started twice; what may be lost is listed.
// The damaged file is set aside and never deleted. A kill at any point is continued by the next start.

import { existsSync, statSync } from 'node:fs';
import { open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { syncFolder } from '../lib/files/files.ts';
import type { Logger } from '../lib/logger.ts';
import { t } from '../lib/texts.ts';
import type { Clock } from '../lib/time/clock.ts';
import { damageMark } from './bus/store/database.ts';
import {
  type Rebuilt,
  type Salvage,
  type Source,
  salvage,
  sequenceOf,
} from './bus/store/salvage.ts';
import { snapshotsOf, snapshotTime } from './bus/store/snapshot.ts';
import { RECOVERY_SCOPE, StoreError, UNTOLD } from './bus/store/store.ts';
import type { Home } from './config/files/home.ts';
import type { MessageId, SessionKey, TurnId } from './message/ids.ts';
import type { TranscriptEntry } from './message/transcript.ts';
import { storedFiles } from './sessions/catalog.ts';
import { readDecoded } from './sessions/file-lines.ts';
import { decodeLine } from './sessions/rules/file.ts';

type RecoveryDeps = { readonly home: Home; readonly clock: Clock; readonly log: Logger };

const PRIVATE_FILE = 0o600;

/** Names the report of the recovery that ended last. */
export async function recoverStore(deps: RecoveryDeps, reason: string): Promise<string> {
  const { home, clock, log } = deps;
  const path = home.state;
  const at = clock.now();
  const stamp = stampOf(at);
  log.error('store damaged; rebuilding it', { path, reason });
  const facts = await readConversations(home.sessions, factsSince(path, at), log);
  const building = `${path}.recovering`;
  const lines = await build(deps, facts, { building, at, stamp, reason });
  const report = `${path}.damaged-${stamp}.txt`;
  await writeFile(report, `${lines.join('\n')}\n`, { mode: PRIVATE_FILE });
  await syncPath(building);
  await rename(building, `${path}.recovered-${stamp}`);
  await syncFolder(dirname(path));
  await finishRecovery(path);
  log.warn('store rebuilt', { report, lines });
  return report;
}

/** `2026-11-23T22-05-14`: fits into a file name. */
const stampOf = (at: number) => new Date(at).toISOString().slice(0, 19).replaceAll(':', '-');

async function syncPath(path: string): Promise<void> {
  const file = await open(path, 'r+');
  await file.sync().finally(() => file.close());
}

/** Puts a completely rebuilt file in its place; called at every start. */
export async function finishRecovery(path: string): Promise<void> {
  const prefix = `${basename(path)}.recovered-`;
  const names = await readdir(dirname(path)).catch((): string[] => []);
  const ready = names.filter((name) => name.startsWith(prefix) && !/-(?:wal|shm)$/.test(name));
  const newest = ready.sort().at(-1);
  if (newest === undefined) return;
  const stamp = newest.slice(prefix.length);
  // The log first: it must not be found beside another file.
  await rm(`${path}-shm`, { force: true });
  for (const suffix of ['-wal', '']) await setAside(path, suffix, stamp);
  await rename(join(dirname(path), newest), path);
  await rm(damageMark(path), { force: true });
  await syncFolder(dirname(path));
}

async function setAside(path: string, suffix: string, stamp: string): Promise<void> {
  const { size } = statSync(path + suffix, { throwIfNoEntry: false }) ?? {};
  if (size === undefined) return;
  if (size === 0 && suffix !== '') return rm(path + suffix);
  for (let copy = 1; ; copy += 1) {
    const to = `${path}.damaged-${stamp}${copy === 1 ? '' : `-${copy}`}${suffix}`;
    if (existsSync(to)) continue;
    await rename(path + suffix, to);
    return;
  }
}

/** Reports of recoveries whose damaged files are still there. */
export async function recoveryReports(path: string): Promise<readonly string[]> {
  const names = await readdir(dirname(path)).catch((): string[] => []);
  const isReport = (name: string) => name.startsWith(`${basename(path)}.damaged-`);
  return names
    .filter((name) => isReport(name) && name.endsWith('.txt'))
    .map((name) => join(dirname(path), name));
}

type Building = {
  readonly building: string;
  readonly at: number;
  readonly stamp: string;
  readonly reason: string;
};

/** From fewer files where one of them makes the work fail. */
async function build(deps: RecoveryDeps, facts: Facts, how: Building): Promise<readonly string[]> {
  const { home, log } = deps;
  const all = sourcesOf(home.state, facts);
  for (let first = 0; ; first += 1) {
    const sources = all.slice(first);
    for (const suffix of ['', '-wal', '-shm', '-journal']) {
      await rm(how.building + suffix, { force: true });
    }
    let lines: readonly string[] = [];
    try {
      await salvage(sources, how.building, (database, salvaged) => {
        const outcome = reconcile(database, facts, how.at);
        lines = reportLines({ ...how, path: home.state, sources, salvaged, outcome });
        remember(database, lines, how.at);
      });
      return lines;
    } catch (error) {
      if (error instanceof StoreError || isOfDisk(error) || sources.length === 0) throw error;
      log.error('store not readable at all', { path: sources[0]?.path, error });
    }
  }
}

const SQLITE_FULL = 13;
const isOfDisk = (error: unknown) =>
  error instanceof Error &&
  'errcode' in error &&
  [SQLITE_FULL, 10].includes(Number(error.errcode) & 0xff);

/** The file itself first, unless a snapshot is newer: then its log is lost. */
function sourcesOf(path: string, facts: Facts): readonly Source[] {
  const sequence = sequenceOf(path);
  const isOld = sequence !== undefined && sequence < facts.newestSeq;
  const own: Source = { path, isOld };
  const snapshots = snapshotsOf(path)
    .filter((copy) => existsSync(copy))
    .map((copy): Source => ({ path: copy, isOld: true }));
  const isNewer = ({ path: copy }: Source) => (sequenceOf(copy) ?? -1) > (sequence ?? -1);
  return isOld
    ? [...snapshots.filter(isNewer), own, ...snapshots.filter((one) => !isNewer(one))]
    : [own, ...snapshots];
}

// What the conversations tell: which messages were processed, and how far.

type Told = {
  readonly id: MessageId;
  readonly session: SessionKey;
  readonly turn: TurnId;
  readonly seq: number | undefined;
  readonly at: number;
};

type Facts = {
  readonly told: Map<MessageId, Told>;
  /** Up to which number the messages of a session were processed. */
  readonly through: Map<SessionKey, number>;
  newestSeq: number;
};

const DAY_MS = 86_400_000;
/** Without a snapshot; no platform delivers older messages again. */
const WITHOUT_SNAPSHOT_MS = 30 * DAY_MS;

function factsSince(path: string, now: number): number {
  const times = snapshotsOf(path).map((copy) => snapshotTime(copy) ?? Number.POSITIVE_INFINITY);
  const oldest = Math.min(...times, now);
  return oldest < now ? oldest - DAY_MS : now - WITHOUT_SNAPSHOT_MS;
}

async function readConversations(folder: string, since: number, log: Logger): Promise<Facts> {
  const facts: Facts = { told: new Map(), through: new Map(), newestSeq: 0 };
  for (const { path, modifiedAt } of await storedFiles(folder)) {
    if (modifiedAt < since) continue;
    let session: SessionKey | undefined;
    try {
      for await (const line of readDecoded(path)) {
        if (line.kind === 'header') session = line.header.key;
        if (line.kind === 'entry' && !line.carried && session !== undefined) {
          note(facts, session, line.entry);
        }
      }
    } catch (error) {
      log.warn('session file not read', { path, error });
    }
  }
  return facts;
}

function note(facts: Facts, session: SessionKey, entry: TranscriptEntry): void {
  if (entry.role === 'user') {
    const { messageId: id, turnId: turn, seq, at } = entry;
    facts.newestSeq = Math.max(facts.newestSeq, seq ?? 0);
    if (id !== undefined) facts.told.set(id, { id, session, turn, seq, at });
  }
  if (entry.role === 'turn_end') {
    const { throughSeq } = entry;
    facts.newestSeq = Math.max(facts.newestSeq, throughSeq);
    facts.through.set(session, Math.max(facts.through.get(session) ?? 0, throughSeq));
  }
}

/** Read of each session file that was written after state.db. */
const TAIL_BYTES = 32_768;
const NUMBERS = /"(?:seq|through_seq)":(\d+)/g;
/** Files are written a moment before the store forgets their lines. */
const SLACK_MS = 2000;

/**
 * Whether the conversations know messages that the store does not: its log was lost or another,
 * older file is in its place. A store that was closed is newer than all of them.
 */
export async function isBehind({ state, sessions }: Home): Promise<boolean> {
  const storedAt = statSync(state, { throwIfNoEntry: false })?.mtimeMs;
  if (storedAt === undefined) return false;
  const later = (await storedFiles(sessions)).filter(
    (file) => file.modifiedAt > storedAt - SLACK_MS,
  );
  if (later.length === 0) return false;
  const sequence = sequenceOf(state) ?? Number.POSITIVE_INFINITY;
  for (const { path, bytes } of later) {
    const tail = await readTail(path, bytes).catch(() => '');
    if ([...tail.matchAll(NUMBERS)].some(([, number]) => Number(number) > sequence)) return true;
  }
  return false;
}

async function readTail(path: string, bytes: number): Promise<string> {
  const length = Math.min(bytes, TAIL_BYTES);
  const file = await open(path, 'r');
  const { buffer } = await file
    .read(Buffer.alloc(length), 0, length, bytes - length)
    .finally(() => file.close());
  return buffer.toString('utf8');
}

// The rebuilt file is corrected by what the conversations tell.

type Outcome = {
  readonly waiting: number;
  /** Were waiting in a snapshot and have been processed since. */
  readonly processed: number;
  /** Their ids are known again, so that a platform that repeats them is not answered twice. */
  readonly known: number;
  /** Their processing was interrupted, and the message itself is lost. */
  readonly interrupted: readonly Told[];
  readonly doubtful: number;
};

/** A number is never used again: turns and answers are named after it. */
const NUMBERS_SKIPPED = 1_000_000;

function reconcile(database: Rebuilt, facts: Facts, at: number): Outcome {
  noteJournal(database, facts);
  const processed = endProcessed(database, facts, at);
  const { known, interrupted } = knowAgain(database, facts, at);
  for (const [table, column] of [
    ['inbound', 'seq'],
    ['outbound', 'ord'],
  ] as const) {
    const highest = Math.max(
      facts.newestSeq,
      number(database, `SELECT max(${column}) AS n FROM ${table}`),
    );
    database.prepare('DELETE FROM sqlite_sequence WHERE name = ?').run(table);
    database
      .prepare('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)')
      .run(table, highest + NUMBERS_SKIPPED);
  }
  database.exec(`
    INSERT OR IGNORE INTO session_lane (session)
      SELECT DISTINCT session FROM inbound WHERE state = 'pending';
    UPDATE session_lane SET ready_at = ${at} WHERE owner IS NULL AND ready_at IS NULL
      AND session IN (SELECT session FROM inbound WHERE state = 'pending');
    UPDATE outbound SET ready_at = ${at} WHERE state = 'queued' AND ready_at IS NULL AND ord IN
      (SELECT min(ord) FROM outbound WHERE state IN ('queued', 'sending') GROUP BY lane);
    DELETE FROM draft WHERE
      NOT EXISTS (SELECT 1 FROM inbound WHERE seq = first_seq AND state = 'pending')
      AND NOT EXISTS (SELECT 1 FROM outbound
        WHERE state IN ('queued', 'sending') AND finalizes = draft.turn);
  `);
  return {
    waiting: number(database, `SELECT count(*) AS n FROM inbound WHERE state = 'pending'`),
    ...{ processed, known, interrupted },
    doubtful: number(database, `SELECT count(*) AS n FROM outbound WHERE state = 'unknown'`),
  };
}

const number = (database: Rebuilt, sql: string): number =>
  Number(database.prepare(sql).get()?.['n'] ?? 0);

/** Lines that are not in their files yet. */
function noteJournal(database: Rebuilt, facts: Facts): void {
  for (const row of database.prepare('SELECT session, text FROM session_entry').all()) {
    for (const text of String(row['text']).split('\n')) {
      const line = decodeLine(text);
      if (line.kind !== 'entry' || line.carried) continue;
      note(facts, String(row['session']) as SessionKey, line.entry);
    }
  }
}

function endProcessed(database: Rebuilt, { through }: Facts, at: number): number {
  const end = database.prepare(
    `UPDATE inbound SET state = 'done', reason = ?,
       settled_at = ? WHERE state = 'pending' AND session = ? AND seq <= ?`,
  );
  let count = 0;
  for (const [session, seq] of through)
    count += Number(end.run(t`processed before state.db was damaged`, at, session, seq).changes);
  return count;
}

function knowAgain(database: Rebuilt, { told, through }: Facts, at: number) {
  const find = database.prepare('SELECT state FROM inbound WHERE id = ?');
  const insert = database.prepare(
    `INSERT OR IGNORE INTO inbound
       (seq, id, session, state, reason, turn, received_at, accepted_at, settled_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const interrupted: Told[] = [];
  let known = 0;
  for (const one of told.values()) {
    if (find.get(one.id) !== undefined) continue;
    const { id, session, seq, turn } = one;
    const isProcessed = seq === undefined || seq <= (through.get(session) ?? 0);
    const state = isProcessed ? 'done' : 'recorded';
    const reason = isProcessed ? null : t`interrupted when state.db was damaged`;
    if (!isProcessed) interrupted.push(one);
    const row = [id, session, state, reason, turn, one.at, one.at, at] as const;
    const { changes } = insert.run(seq ?? null, ...row);
    // Another message may have the number.
    if (changes === 0) insert.run(null, ...row);
    known += 1;
  }
  return { known, interrupted };
}

/** For the owners, who get it when the gateway runs. */
function remember(database: Rebuilt, lines: readonly string[], at: number): void {
  database
    .prepare('INSERT OR REPLACE INTO key_value (scope, key, value, written_at) VALUES (?, ?, ?, ?)')
    .run(RECOVERY_SCOPE, UNTOLD, JSON.stringify({ at, text: lines.join('\n') }), at);
}

// The report.

type Reported = Building & {
  readonly path: string;
  readonly sources: readonly Source[];
  readonly salvaged: Salvage;
  readonly outcome: Outcome;
};

const MAX_LISTED = 20;
const CHANNEL_SCOPE = /^channel:([^:]+):/;

function reportLines(reported: Reported): readonly string[] {
  const { path, stamp, reason, sources, salvaged, outcome } = reported;
  const oldest = sources.filter(({ isOld }, index) => isOld && sum(salvaged.taken[index]) > 0);
  const since = Math.min(...oldest.map((source) => snapshotTime(source.path) ?? 0));
  const time = oldest.length === 0 ? undefined : new Date(since).toISOString();
  const isLossless = oldest.length === 0 && salvaged.incomplete.length === 0;
  return [
    t`state.db was damaged (${reason}) and has been rebuilt. The damaged file is kept as ` +
      t`${path}.damaged-${stamp}.`,
    ...sources.map((source, index) => {
      const rows = sum(salvaged.taken[index]);
      if (source.path === path) return t`Read from the damaged file: ${rows} rows.`;
      return t`Taken from the snapshot of ${timeOf(source.path)}: ${rows} rows.`;
    }),
    ...(sources.length > 1 ? [] : [t`There was no snapshot.`]),
    t`${outcome.waiting} messages wait and are answered now. ${outcome.processed} others and ` +
      t`${outcome.known} that only the conversations know were already processed and are not answered again.`,
    ...(isLossless ? [t`Nothing is lost.`] : lossLines(reported, time)),
  ];
}

function lossLines({ salvaged, outcome }: Reported, time: string | undefined): readonly string[] {
  const { interrupted, doubtful } = outcome;
  const { agedScopes, aged, incomplete } = salvaged;
  const lost = (table: string) => incomplete.includes(table) || aged.includes(table);
  const since = time === undefined ? '' : t` since ${time}`;
  const channels = new Set(agedScopes.flatMap((scope) => CHANNEL_SCOPE.exec(scope)?.[1] ?? []));
  return [
    ...(lost('inbound')
      ? [
          t`Lost: messages that arrived${since} and were not answered yet. Ask people to send them again.`,
        ]
      : []),
    ...interrupted
      .slice(0, MAX_LISTED)
      .map(
        ({ session, at }) =>
          t`Interrupted: a message of ${isoMinute(at)} in ${session}. Ask for it again.`,
      ),
    ...(doubtful === 0
      ? []
      : [t`${doubtful} outgoing messages may have been delivered: nanobot dead list`]),
    ...(incomplete.includes('outbound')
      ? [t`Lost: outgoing messages that were not delivered yet${since}.`]
      : []),
    ...(agedScopes.length === 0
      ? []
      : [
          t`As it was at ${time}, and what changed since is lost: ${agedScopes.join(', ')}. Check who may ` +
            t`write and which allow rules apply: nanobot people list, nanobot approvals list`,
        ]),
    ...[...channels].map(
      (channel) =>
        t`Keys and positions of ${channel} are from then. If it disconnects or cannot read messages, link it ` +
        t`again: nanobot channels login ${channel}`,
    ),
    ...(incomplete.includes('key_value')
      ? [
          t`Lost, as far as no snapshot has them: people, approvals, jobs, settings of chats and the keys of ` +
            t`channels. Check them: nanobot doctor, nanobot people list, nanobot cron list`,
        ]
      : []),
  ];
}

const sum = (rows: ReadonlyMap<string, number> | undefined): number =>
  [...(rows?.values() ?? [])].reduce((total, count) => total + count, 0);
const timeOf = (path: string) => new Date(snapshotTime(path) ?? 0).toISOString();
const isoMinute = (at: number) => `${new Date(at).toISOString().slice(0, 16)}Z`;

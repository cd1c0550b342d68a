// The processes on one database: each has a row that it touches every second on a connection of its
// own, and looks at those of the others. One that is silent, or whose connection is gone, is dead:
// its other connections are ended, its row is removed, and what it held is free.

import { hash } from 'node:crypto';
import type { Logger } from '../../../../lib/logger.ts';
import { backoffMs, type Clock, clockOffsetMs } from '../../../../lib/time/clock.ts';
import {
  type AccountName,
  accountName,
  type SessionKey,
  sessionKey,
} from '../../../message/ids.ts';
import type { LiveUpdate } from '../../../message/message.ts';
import type { NodeRole, NodeSelf, SharedStore } from '../shared.ts';
import type { Connection } from './connection.ts';
import { isDatabaseError, Unreachable } from './connection.ts';

const PULSE_MS = 1000;
/** A process that is stopped or cut off is dead after this; others wait for nobody longer. */
const SILENT_MS = 4000;
/** One whose connection is gone has this long to come back. */
const CUT_MS = 1800;
/** A server that started so recently may not have heard of all its processes yet. */
const SETTLE_MS = 3000;
/** Waiting work that nobody has taken for so long was not heard of. */
const OVERDUE_MS = 2000;
/** After the time at which a process is dead: the server measures its silence. */
const AFTER_MS = 20;
/** A process that is not known may have come since the last look. */
const UNKNOWN_MS = 2 * PULSE_MS;
export const PULSE_DEADLINE_MS = 3000;
/** Behind how many others a busy process comes. */
const BUSY_RANKS = 4;
/** Between two updates of a running turn to other processes. */
const SHOW_MS = 250;
const KEEP_SHOWN = '60 seconds';
const LIVE_CHANNEL = 'nanobot_live';
const MAX_BODY_CHARS = 200_000;

type MembershipDeps = {
  readonly self: NodeSelf;
  readonly owner: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** A connection whose end shows the others the end of this process. */
  connect(onNotice: (payload: string) => void): Promise<Connection>;
  /** Removes these processes and takes over from them; returns the number of their turns. */
  bury(owners: readonly string[]): Promise<number>;
  /** Something was held by a process of which nothing is known. */
  takeOver(): Promise<number>;
  /** The server has not heard of this process for so long that the others end its connections. */
  onCut(): void;
  /** Other processes have come or gone. */
  onChange(): void;
  /** A turn waits that some process should have taken. */
  onOverdue(session: SessionKey): void;
};

type Row = {
  readonly owner: string;
  readonly self: string;
  readonly started_at: number;
  readonly is_draining: number;
  readonly silent: number;
  readonly connected: string;
};

export function createMembership(deps: MembershipDeps) {
  const { owner, clock, log } = deps;
  const startedAt = clock.now();
  const closing = new AbortController();
  const onLost = new Set<() => void>();
  let lastBeatAt = clock.monotonic();
  const onShown = new Map<(update: LiveUpdate) => void, (account: AccountName) => boolean>();
  let pause = new AbortController();
  let takingOver: Promise<void> | undefined;
  const waiting = new Map<string, () => LiveUpdate>();
  const pausing = new Map<string, Disposable>();
  let connection: Connection | undefined;
  let known: readonly Row[] = [];
  let leaders = new Map<string, string>();
  const unknown = new Map<string, number>();
  let isDraining = false;
  let isNode = false;
  let isMissed = false;
  let isCut = false;
  let offsetMs = 0;
  let shownThrough = 0;
  let settledAt = 0;
  let over: Promise<void> = Promise.resolve();

  async function open(): Promise<Connection> {
    const opened = await deps.connect((payload) => {
      const at = payload.indexOf(' ');
      const account = payload.slice(at + 1) as AccountName;
      if (payload.slice(0, at) === owner || !isShownWanted(account)) return;
      void readShown().catch(() => undefined);
    });
    const { rows } = await opened.prepare(PULSE_DEADLINE_MS, async () => {
      await opened.script(`SET synchronous_commit = 'off'; LISTEN ${LIVE_CHANNEL}`);
      return opened.send(
        `SELECT coalesce(max(ord), 0) AS ord, (clock_timestamp() - pg_postmaster_start_time()
           < interval '${SETTLE_MS} milliseconds')::int AS young FROM live_update`,
      );
    });
    shownThrough = Number(rows[0]?.['ord'] ?? 0);
    // After a restart of the server, or a cut, others may be about to come back too.
    const isYoung = rows[0]?.['young'] === 1 || connection !== undefined;
    settledAt = clock.monotonic() + (isYoung ? SETTLE_MS : 0);
    connection = opened;
    return opened;
  }

  /** @throws what `isDatabaseError` knows */
  async function beat(to: Connection): Promise<void> {
    const sentAt = clock.now();
    const touched = await to.send(
      `UPDATE node SET seen_at = clock_timestamp(), is_draining = ? WHERE owner = ?
       RETURNING (extract(epoch FROM seen_at) * 1000)::bigint AS now`,
      [isDraining ? 1 : 0, owner],
    );
    if (touched.count === 0) return register(to);
    offsetMs = clockOffsetMs(offsetMs, sentAt, Number(touched.rows[0]?.['now']), clock.now());
  }

  async function register(to: Connection): Promise<void> {
    await to.send(
      `INSERT INTO node (owner, self, started_at, is_draining, seen_at)
       VALUES (?, ?, ?, ?, clock_timestamp())
       ON CONFLICT (owner) DO UPDATE SET seen_at = excluded.seen_at`,
      [owner, JSON.stringify(deps.self), startedAt, isDraining ? 1 : 0],
    );
    isMissed ||= isNode;
    isNode = true;
  }

  /** What it held may be held by others. */
  function lose(why: string): void {
    isMissed = false;
    log.warn('this process may have lost what it held', { why });
    for (const hear of onLost) hear();
  }

  async function look(at: Connection): Promise<void> {
    const [nodes, led, strays, overdue] = await Promise.all([
      at.send(
        `SELECT owner, self, started_at, is_draining,
           (extract(epoch FROM clock_timestamp() - seen_at) * 1000)::bigint AS silent,
           EXISTS (SELECT 1 FROM pg_stat_activity
             WHERE application_name = 'nanobot ' || node.owner || ' pulse') AS connected
         FROM node ORDER BY started_at, owner`,
      ),
      at.send('SELECT resource, owner FROM leader WHERE owner IS NOT NULL'),
      at.send(
        `SELECT 1 AS one FROM session_lane WHERE owner IS NOT NULL
           AND owner NOT IN (SELECT owner FROM node) LIMIT 1`,
      ),
      at.send(
        `SELECT session FROM session_lane
         WHERE ready_at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - ${OVERDUE_MS}
         LIMIT 1`,
      ),
    ]);
    const before = JSON.stringify([known.map((row) => row.owner), [...leaders]]);
    known = nodes.rows as unknown as readonly Row[];
    for (const row of known) unknown.delete(row.owner);
    leaders = new Map(led.rows.map((row) => [String(row['resource']), String(row['owner'])]));
    if (JSON.stringify([known.map((row) => row.owner), [...leaders]]) !== before) deps.onChange();
    for (const { session } of overdue.rows) deps.onOverdue(sessionKey(String(session)));
    if (clock.monotonic() < settledAt) return;
    const dead = known.filter((row) => row.owner !== owner && isDead(row)).map((row) => row.owner);
    for (const each of dead) await endConnections(at, each);
    const isLedByNobody = [...leaders.values()].some(
      (by) => !known.some((row) => row.owner === by),
    );
    const isLeft = strays.rows.length > 0 || isLedByNobody;
    if (dead.length === 0 && !isLeft) return;
    if (takingOver !== undefined) return;
    takingOver = takeOver(dead)
      .catch((error) => log.warn('work of processes that are gone not taken over', { error }))
      .finally(() => {
        takingOver = undefined;
      });
  }

  /**
   * Beside the signs of life: it waits for the lock of writers, which another process may hold that
   * has just stopped and whose connections only a later look ends.
   */
  async function takeOver(dead: readonly string[]): Promise<void> {
    const turns = dead.length > 0 ? await deps.bury(dead) : await deps.takeOver();
    log.warn('processes are gone; their work is taken over', { processes: dead.length, turns });
    deps.onChange();
    // What is free now.
    refresh();
  }

  /** Looks again at once. */
  function refresh(): void {
    pause.abort();
  }

  /** Until the next look: no later than when a silent process is dead. */
  function restMs(): number {
    const left = known
      .filter((row) => row.owner !== owner)
      .map((row) => limitOf(row) - row.silent + AFTER_MS)
      .filter((ms) => ms > 0);
    return Math.min(PULSE_MS, ...left);
  }

  /** What a stopped process has under way must not block the others. */
  async function endConnections(by: Connection, dead: string): Promise<void> {
    await by.send(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE application_name LIKE 'nanobot ' || ?1 || '%'`,
      [dead],
    );
  }

  async function pulse(): Promise<void> {
    const at = connection?.isOver === false ? connection : await open();
    await at.within(PULSE_DEADLINE_MS, async () => {
      await beat(at);
      lastBeatAt = clock.monotonic();
      isCut = false;
      await look(at);
      if (isMissed) lose('taken for dead');
      await at.send(
        `DELETE FROM live_update WHERE written_at < clock_timestamp() - interval '${KEEP_SHOWN}'`,
      );
    });
  }

  async function run(): Promise<void> {
    for (let failures = 0; !closing.signal.aborted; ) {
      const waitMs =
        failures === 0
          ? restMs()
          : backoffMs(failures, { minMs: 100, maxMs: PULSE_MS, random: Math.random });
      const signal = AbortSignal.any([closing.signal, pause.signal]);
      await clock.sleep(waitMs, signal).catch(() => undefined);
      pause = new AbortController();
      if (closing.signal.aborted) return;
      try {
        await pulse();
        failures = 0;
      } catch (error) {
        failures += 1;
        connection?.end();
        if (!isCut && clock.monotonic() - lastBeatAt > SILENT_MS) {
          isCut = true;
          deps.onCut();
          lose('no connection');
        }
        const fields = { failures, error: isDatabaseError(error) ? undefined : error };
        log.info('no sign of life given to the other processes', fields);
      }
    }
  }

  const isShownWanted = (account: AccountName) =>
    [...onShown.values()].some((wants) => wants(account));

  async function readShown(): Promise<void> {
    if (onShown.size === 0 || connection === undefined) return;
    const { rows } = await connection.send(
      'SELECT ord, owner, body FROM live_update WHERE ord > ? ORDER BY ord LIMIT 1000',
      [shownThrough],
    );
    for (const row of rows) {
      shownThrough = Math.max(shownThrough, Number(row['ord']));
      if (row['owner'] === owner) continue;
      const update = JSON.parse(String(row['body'])) as LiveUpdate;
      for (const hear of onShown.keys()) hear(update);
    }
  }

  function sendShown(turn: string): void {
    const update = waiting.get(turn)?.();
    waiting.delete(turn);
    pausing.delete(turn);
    if (update === undefined) return;
    const body = JSON.stringify(update);
    if (connection === undefined || connection.isOver || body.length > MAX_BODY_CHARS) return;
    const written = connection.send(
      `WITH written AS (INSERT INTO live_update (turn, owner, body, written_at)
         VALUES (?, ?, ?, clock_timestamp())
         ON CONFLICT (turn) DO UPDATE SET ord = DEFAULT, owner = excluded.owner,
           body = excluded.body, written_at = excluded.written_at RETURNING 1)
       SELECT pg_notify('${LIVE_CHANNEL}', ?) FROM written`,
      [turn, owner, body, `${owner} ${accountName(update.chat)}`],
    );
    // Best effort.
    written.catch(() => undefined);
    pausing.set(
      turn,
      clock.timer(SHOW_MS, () => sendShown(turn)),
    );
  }

  /** Takes part, and not only as this. */
  const isOther = (row: Row, only: NodeRole) =>
    row.owner !== owner && row.is_draining === 0 && !isDead(row) && selfOf(row).role !== only;

  return {
    /** Resolves when the others know this process. @throws what `isDatabaseError` knows */
    async join(): Promise<void> {
      await pulse();
      over = run();
    },
    others: () => known.filter((row) => row.owner !== owner && !isDead(row)).map(selfOf),
    /** Resolves when what other processes told before has been heard. */
    async heard(): Promise<void> {
      if (connection === undefined || connection.isOver) throw new Unreachable('no connection');
      await connection.send('SELECT 1 AS one');
    },
    shared: {
      owner,
      isLive(by: string): boolean {
        const now = clock.monotonic();
        if (by === owner || now < settledAt) return true;
        const row = known.find((each) => each.owner === by);
        if (row !== undefined) return !isDead(row);
        const since = unknown.get(by) ?? now;
        unknown.set(by, since);
        return now - since < UNKNOWN_MS;
      },
      leaderOf: (resource: string) => leaders.get(resource),
      hasOtherChannels: () => known.some((row) => isOther(row, 'workers')),
      onLost(hear: () => void): Disposable {
        onLost.add(hear);
        return { [Symbol.dispose]: () => void onLost.delete(hear) };
      },
      onShown(hear, wants): Disposable {
        onShown.set(hear, wants);
        return { [Symbol.dispose]: () => void onShown.delete(hear) };
      },
      rankFor(session: SessionKey, isBusy = false): number | undefined {
        if (deps.self.role === 'channels' || isDraining) return undefined;
        const others = known.filter((row) => isOther(row, 'channels'));
        const own = weightOf(owner, session);
        const before = others.filter((row) => weightOf(row.owner, session) > own);
        return before.length + (isBusy ? Math.min(others.length, BUSY_RANKS) : 0);
      },
      show(update: LiveUpdate, shown: (update: LiveUpdate) => LiveUpdate): void {
        if (known.length < 2) return;
        const turn = `${accountName(update.chat)} ${update.turnId}`;
        waiting.set(turn, () => shown(update));
        if (update.phase === 'ended') pausing.get(turn)?.[Symbol.dispose]();
        if (update.phase === 'ended' || !pausing.has(turn)) sendShown(turn);
      },
      drain(): void {
        isDraining = true;
      },
      offsetMs: () => offsetMs,
      isConnected: () => !isCut,
    } satisfies Partial<SharedStore>,
    refresh,
    noteLeader(resource: string, by: string | undefined): void {
      if (by === undefined) leaders.delete(resource);
      else leaders.set(resource, by);
    },
    async leave(): Promise<void> {
      closing.abort();
      await over;
      for (const timer of pausing.values()) timer[Symbol.dispose]();
      const last = connection;
      if (last === undefined || last.isOver) return;
      const removed = () => last.send('DELETE FROM node WHERE owner = ?', [owner]);
      await last.within(PULSE_DEADLINE_MS, removed).catch(() => undefined);
      await last.close();
    },
  };
}

const selfOf = (row: Row): NodeSelf => JSON.parse(row.self) as NodeSelf;

const limitOf = ({ connected }: Row) => (connected === 't' ? SILENT_MS : CUT_MS);
const isDead = (row: Row) => row.silent > limitOf(row);

/** Rendezvous hashing: the turns of a session go to the same process while it lives. */
const weightOf = (owner: string, session: SessionKey): string =>
  hash('sha256', `${owner} ${session}`);

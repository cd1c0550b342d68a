// Runs turns: claims what is due while there are places, passes it to the handler and records how
// it ended. A claim counts a try before the handler runs.

import { setImmediate } from 'node:timers/promises';
import { createBusyGauge } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import { type Clock, onAbort } from '../../lib/time/clock.ts';
import { retryDelayMs } from '../message/delivery.ts';
import { shortageOf } from '../message/errors.ts';
import { answerIdOf, type MessageId, type SessionKey, turnIdOf } from '../message/ids.ts';
import type { OutboundDraft, OutboundMessage } from '../message/message.ts';
import type { TurnEntries } from '../sessions/store.ts';
import {
  type QueuedMessage,
  TurnCancelled,
  TurnDeferred,
  type TurnHandler,
  TurnInterrupted,
  type WorkOptions,
} from './bus.ts';
import {
  type ClaimLoop,
  createAlarm,
  createClaimLoop,
  type Place,
  whenThereIsRoom,
} from './claim-loop.ts';
import type { LaneNews, SharedStore, StoreNews } from './store/shared.ts';
import type { BusStore, ClaimedTurn, NewEntryRow, TurnEnding } from './store/store.ts';

const DEATHS_PER_FAILURE = 2;
/** A message that meets only shortages for this long may be their cause. */
const BLAMELESS_MS = 24 * 3600 * 1000;

/** During a shortage no turn starts: this long at first, doubling. */
const SHORTAGE_MIN_MS = 1000;
const SHORTAGE_MAX_MS = 5000;
/** Without another error for this long a shortage is over, and the next one is reported again. */
const SHORTAGE_OVER_MS = 10 * 60_000;

/**
 * During a shortage fewer turns run at once: after a pause half as many, then slowly more as they
 * end well.
 */
type Shortage = ReturnType<typeof createShortage>;

export function createShortage() {
  let restUntil = Number.NEGATIVE_INFINITY;
  let lastAt = Number.NEGATIVE_INFINITY;
  let rests = 0;
  let places = Number.POSITIVE_INFINITY;

  /** How many turns may start beside the running ones. `now`: monotonic milliseconds. */
  function room(now: number, running: number): number {
    return now < restUntil ? 0 : Math.max(0, Math.floor(places) - running);
  }

  /** A turn failed because of it. Turns that fail in the same pause count once. */
  function met(now: number, running: number): { readonly waitMs: number; readonly isNew: boolean } {
    const isNew = now - lastAt > SHORTAGE_OVER_MS;
    lastAt = now;
    if (now >= restUntil) {
      restUntil = now + Math.min(SHORTAGE_MAX_MS, SHORTAGE_MIN_MS * 2 ** rests);
      rests += 1;
      places = Math.max(1, Math.floor(Math.min(places, running) / 2));
    }
    // A timer may fire a fraction of a millisecond early.
    return { waitMs: Math.ceil(restUntil - now) + 1, isNew };
  }

  function eased(): void {
    rests = 0;
    places += 1 / places;
  }

  /** Whether a turn can start because another has ended. */
  const limitsTurns = () => Number.isFinite(places);

  return { room, met, eased, limitsTurns };
}

type PumpDeps = {
  /** Outlives the pump. */
  readonly shortage: Shortage;
  readonly store: BusStore & { readonly shared?: SharedStore };
  readonly entries?: TurnEntries;
  readonly clock: Clock;
  readonly log: Logger;
  /** Messages were queued for sending, in the current transaction. */
  onQueued(messages: readonly OutboundMessage[]): void;
};

export type TurnPump = ReturnType<typeof createTurnPump>;

export function createTurnPump(handler: TurnHandler, options: WorkOptions, deps: PumpDeps) {
  const running = new Set<RunningTurn>();
  const bySession = new Map<SessionKey, RunningTurn>();
  const doorbell = createDoorbell(deps.clock, (shared) => lookFor(shared));
  const isBusy = createBusyGauge(deps.clock);
  /** Wakes the loop when the pause of a shortage is over. */
  let rest: Disposable | undefined;
  const loop: ClaimLoop<ClaimedTurn> = createClaimLoop({
    clock: deps.clock,
    places: options.maxOpenTurns,
    stopGraceMs: options.drainMs ?? 0,
    failureGraceMs: 0,
    mayClaim: () => room() > 0,
    claim: (places) =>
      deps.store.claimTurns(
        () => Math.min(places(), room()),
        (session) => leaveMs(deps.store.shared, session) ?? 0,
      ),
    perform: (claim, place) => perform(claim, place),
    interrupt: () => interrupt(),
  });

  /** Works until the signal aborts or the store fails, then waits for running turns. */
  async function run(): Promise<void> {
    const recovered = await deps.store.recoverTurns();
    if (recovered > 0) deps.log.info('turns of an earlier process recovered', { recovered });
    try {
      await loop.run(options.signal);
    } finally {
      rest?.[Symbol.dispose]();
      doorbell.close();
    }
  }

  function pump(): void {
    loop.wake();
  }

  function turnOf(session: SessionKey): RunningTurn | undefined {
    return bySession.get(session);
  }

  /** Another process wrote: anything may be due, any turn may have a follower or be stopped. */
  function onOutsideChange(): void {
    for (const turn of running) turn.announceFollower();
    pump();
  }

  function hearOfOthers(shared: SharedStore, news: StoreNews): void {
    if (news.isAnything) {
      if (running.size > 0) void hearOfTurns(shared);
      lookFor(shared);
    }
    for (const lane of news.lanes) hearOfLane(shared, lane);
  }

  function hearOfLane(shared: SharedStore, lane: LaneNews): void {
    const { session, readyAt, isOwn, isStopped } = lane;
    if (isOwn && isStopped) void hearOfTurns(shared);
    else if (isOwn) bySession.get(session)?.announceFollower();
    const left = readyAt === undefined ? undefined : leaveMs(shared, session);
    if (readyAt === undefined || left === undefined) doorbell.unset(session);
    else if (left === 0 && readyAt <= deps.clock.now()) pump();
    else doorbell.set(shared, session, Math.max(readyAt, deps.clock.now()) + left);
  }

  /** How long a due session is left to other processes; undefined: for ever. */
  function leaveMs(shared: SharedStore | undefined, session: SessionKey): number | undefined {
    const rank = shared?.rankFor(session, running.size > 1 && isBusy());
    return rank === undefined ? undefined : rank * TURN_TO_MS;
  }

  /** A look takes no lock, so that one message does not make all processes wait for each other. */
  function lookFor(shared: SharedStore): void {
    shared.isTurnDue().then(
      (isDue) => isDue && pump(),
      () => pump(),
    );
  }

  async function hearOfTurns(shared: SharedStore): Promise<void> {
    const news = await shared.newsOfTurns().catch(() => []);
    for (const { session, stopped } of news) {
      const turn = bySession.get(session);
      if (stopped === null) turn?.announceFollower();
      else turn?.abort(new TurnCancelled(stopped));
    }
  }

  /** Turns that this process does not hold any more end at once; their writes would be refused. */
  async function onLost(shared: SharedStore): Promise<void> {
    if (!shared.isConnected()) return;
    const before = [...running];
    const held = await shared.held().catch(() => undefined);
    if (held === undefined) return;
    const isHeld = new Map(held.map(({ session, epoch }) => [session, epoch]));
    for (const turn of before) {
      if (isHeld.get(turn.session) === turn.epoch) continue;
      turn.abort(new TurnInterrupted('another process took the turn over'));
    }
    pump();
  }

  function room(): number {
    return deps.shortage.room(deps.clock.monotonic(), running.size);
  }

  async function perform(claim: ClaimedTurn, place: Place): Promise<void> {
    const turn = createRunningTurn(claim, deps.store);
    running.add(turn);
    doorbell.unset(turn.session);
    bySession.set(turn.session, turn);
    if (loop.isStopping) turn.abort(new TurnInterrupted('shutting down'));
    try {
      await end(turn, await outcomeOf(turn), place);
    } finally {
      running.delete(turn);
      if (deps.shortage.limitsTurns()) loop.wake();
      if (bySession.get(turn.session) === turn) bySession.delete(turn.session);
    }
  }

  async function outcomeOf(turn: RunningTurn): Promise<TurnEnding> {
    if (turn.deaths >= options.maxAttempts * DEATHS_PER_FAILURE) {
      return poisoned(turn, 'the process ended during each try');
    }
    try {
      if (turn.messages.some(({ message }) => message.sender.kind === 'system')) {
        // The sender of its message writes down what it began as soon as that is stored.
        await deps.store.stored();
        await setImmediate();
      }
      const { throughSeq, outbound, note } = await handler(turn);
      deps.shortage.eased();
      return { kind: 'done', throughSeq, outbound: named(turn, outbound), note };
    } catch (error) {
      return failedTry(turn, error);
    }
  }

  function failedTry(turn: RunningTurn, error: unknown): TurnEnding {
    const { log, clock } = deps;
    const { attempt, session } = turn;
    const why: unknown = turn.signal.reason;
    if (why instanceof TurnCancelled) return { kind: 'cancelled', reason: why.message };
    if (why instanceof TurnInterrupted) return { kind: 'released' };
    const reason = error instanceof Error ? error.message : String(error);
    if (error instanceof TurnDeferred) return { kind: 'deferred', at: error.until, reason };
    const what = shortageOf(error);
    const waitedMs = clock.now() - turn.messages[0].message.receivedAt;
    if (what !== undefined && waitedMs < BLAMELESS_MS) {
      return { kind: 'deferred', at: clock.now() + restFor(what, error), reason };
    }
    if (turn.failures + 1 < options.maxAttempts) {
      const waitMs = retryDelayMs(turn.failures + 1);
      log.warn('turn failed', { session, turnId: turn.id, attempt, waitMs, error });
      return { kind: 'retry', at: clock.now() + waitMs, reason };
    }
    return poisoned(turn, reason);
  }

  /** For how many milliseconds no turn starts. */
  function restFor(what: string, error: unknown): number {
    const { shortage, clock, log } = deps;
    const { waitMs, isNew } = shortage.met(clock.monotonic(), running.size);
    if (isNew) {
      log.error('the process is short of something, turns wait', { what, error });
      options.onShortage?.(what);
    }
    rest?.[Symbol.dispose]();
    rest = clock.timer(waitMs, () => pump());
    return waitMs;
  }

  function poisoned(turn: RunningTurn, reason: string): TurnEnding {
    const { id, session, attempt } = turn;
    deps.log.error('message set aside', { session, turnId: id, attempt, reason });
    return { kind: 'dead', reason, outbound: named(turn, options.onPoison(turn)) };
  }

  async function end(turn: RunningTurn, ending: TurnEnding, place: Place): Promise<void> {
    turn.isEnding = true;
    const write = (entries: readonly NewEntryRow[]) => {
      const ended = deps.store.endTurn(turn, ending, entries);
      if ('outbound' in ending) deps.onQueued(ending.outbound);
      place.free();
      return ended;
    };
    const ended = await whenThereIsRoom(
      deps.clock,
      (what, error) => (loop.isStopping ? undefined : restFor(what, error)),
      () => deps.entries?.endTurn(turn.session, write) ?? write([]),
    );
    if (ended === 'ended') return;
    turn.abort(new TurnInterrupted('the claim was lost'));
    deps.log.warn('turn ended after its claim expired', { turnId: turn.id });
  }

  function interrupt(): void {
    for (const turn of running) turn.abort(new TurnInterrupted('shutting down'));
  }

  return { run, pump, turnOf, onOutsideChange, hearOfOthers, onLost };
}

// Sessions that are due in other processes' turn, or later: where the process that comes first does
// not claim one, because it is busy or gone, the next one does.

/** How long a process leaves a due session to the one that comes before it. */
const TURN_TO_MS = 40;

function createDoorbell(clock: Clock, ring: (shared: SharedStore) => void) {
  const dueAt = new Map<SessionKey, number>();
  let by: SharedStore | undefined;
  const alarm = createAlarm(clock, () => {
    const now = clock.now();
    for (const [session, at] of dueAt) if (at <= now) dueAt.delete(session);
    setAlarm();
    if (by !== undefined) ring(by);
  });

  function setAlarm(): void {
    alarm.set(dueAt.size === 0 ? undefined : Math.min(...dueAt.values()));
  }

  return {
    set(shared: SharedStore, session: SessionKey, at: number): void {
      by = shared;
      dueAt.set(session, at);
      setAlarm();
    },
    /** It was claimed. */
    unset(session: SessionKey): void {
      if (dueAt.delete(session)) setAlarm();
    },
    close(): void {
      dueAt.clear();
      setAlarm();
    },
  };
}

function named(turn: RunningTurn, drafts: readonly OutboundDraft[]): readonly OutboundMessage[] {
  return drafts.map((draft, ordinal) => ({ ...draft, id: answerIdOf(turn.id, ordinal) }));
}

// One turn while its handler runs: its signal, its followers. The bus's announcements tell whether
// a follower may wait, so that `join` costs nothing if none does.

export type RunningTurn = ReturnType<typeof createRunningTurn>;

export function createRunningTurn(claim: ClaimedTurn, store: BusStore) {
  const { session, firstSeq, attempt, messages } = claim;
  const controller = new AbortController();
  const waiting = new Set<() => void>();
  let hasFollower = false;

  const turn = {
    ...claim,
    id: turnIdOf(session, firstSeq),
    chat: messages[0].message.chat,
    signal: controller.signal,
    /** Its writes have begun; its place belongs to the next turn. */
    isEnding: false,

    abort: (reason: Error) => controller.abort(reason),

    contains: (id: MessageId) => messages.some(({ message }) => message.id === id),

    /** A message of this session was stored after those of the turn. */
    announceFollower(): void {
      if (attempt > 1) return;
      hasFollower = true;
      for (const wake of waiting) wake();
    },

    async join(): Promise<readonly QueuedMessage[]> {
      if (!hasFollower || turn.isEnding) return [];
      hasFollower = false;
      const followers = await store.joinTurn(claim);
      if (followers !== undefined) return followers;
      turn.abort(new TurnInterrupted('the claim was lost'));
      return [];
    },

    async arrival(signal: AbortSignal): Promise<void> {
      signal.throwIfAborted();
      if (hasFollower) return;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      using _aborting = onAbort(signal, () => reject(signal.reason));
      waiting.add(resolve);
      try {
        await promise;
      } finally {
        waiting.delete(resolve);
      }
    },
  };
  return turn;
}

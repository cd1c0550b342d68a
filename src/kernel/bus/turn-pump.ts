// Runs turns: claims what is due as long as there are places, hands it to the handler and writes
// down how it ended. A claim counts a try before the handler runs.

import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { retryDelayMs } from '../message/delivery.ts';
import { shortageOf } from '../message/errors.ts';
import { answerIdOf, type SessionKey, type TurnId, turnIdOf } from '../message/ids.ts';
import type { ChatRef, OutboundDraft, OutboundMessage } from '../message/message.ts';
import {
  type QueuedMessage,
  type Turn,
  TurnCancelled,
  TurnDeferred,
  type TurnHandler,
  TurnInterrupted,
  type WorkOptions,
} from './bus.ts';
import { ClaimLoop, type Place } from './claim-loop.ts';
import type { BusStore, ClaimedTurn, TurnEnding } from './store/store.ts';

const DEATHS_PER_FAILURE = 2;
/** A message that meets nothing but shortages for so long may be the reason. */
const BLAMELESS_MS = 24 * 3600 * 1000;

/** While the process is short of something no turn begins: so long at first, doubling. */
const SHORTAGE_MIN_MS = 1000;
const SHORTAGE_MAX_MS = 5000;
/** Without another error for so long it is over, and the next one is news. */
const SHORTAGE_OVER_MS = 10 * 60_000;

/**
 * What the process is short of lasts for fewer turns at once: after a rest half as many, then slowly
 * more as they end well.
 */
export class Shortage {
  #restUntil = Number.NEGATIVE_INFINITY;
  #lastAt = Number.NEGATIVE_INFINITY;
  #rests = 0;
  #places = Number.POSITIVE_INFINITY;

  /** How many turns may begin beside those at work. `now`: monotonic milliseconds. */
  room(now: number, running: number): number {
    return now < this.#restUntil ? 0 : Math.max(0, Math.floor(this.#places) - running);
  }

  /** A turn failed for it. Turns that fail in the same rest are one sign. */
  met(now: number, running: number): { readonly waitMs: number; readonly isNew: boolean } {
    const isNew = now - this.#lastAt > SHORTAGE_OVER_MS;
    this.#lastAt = now;
    if (now >= this.#restUntil) {
      this.#restUntil = now + Math.min(SHORTAGE_MAX_MS, SHORTAGE_MIN_MS * 2 ** this.#rests);
      this.#rests += 1;
      this.#places = Math.max(1, Math.floor(Math.min(this.#places, running) / 2));
    }
    // A timer may ring a part of a millisecond early.
    return { waitMs: Math.ceil(this.#restUntil - now) + 1, isNew };
  }

  eased(): void {
    this.#rests = 0;
    this.#places += 1 / this.#places;
  }
}

export type PumpDeps = {
  /** Outlives the pump. */
  readonly shortage: Shortage;
  readonly store: BusStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Messages were queued for sending, in the transaction under way. */
  onQueued(messages: readonly OutboundMessage[]): void;
};

export class TurnPump {
  readonly #deps: PumpDeps;
  readonly #handler: TurnHandler;
  readonly #options: WorkOptions;
  readonly #running = new Set<RunningTurn>();
  readonly #bySession = new Map<SessionKey, RunningTurn>();
  readonly #loop: ClaimLoop<ClaimedTurn>;
  /** Wakes the loop when the rest of a shortage is over. */
  #rest: Disposable | undefined;

  constructor(handler: TurnHandler, options: WorkOptions, deps: PumpDeps) {
    this.#handler = handler;
    this.#options = options;
    this.#deps = deps;
    this.#loop = new ClaimLoop({
      clock: deps.clock,
      places: options.maxOpenTurns,
      stopGraceMs: options.drainMs ?? 0,
      failureGraceMs: 0,
      mayClaim: () => this.#room() > 0,
      claim: (places) => deps.store.claimTurns(() => Math.min(places(), this.#room())),
      perform: (claim, place) => this.#perform(claim, place),
      interrupt: () => this.#interrupt(),
    });
  }

  /** Works until the signal aborts or the store fails, then waits for the turns that run. */
  async run(): Promise<void> {
    const recovered = await this.#deps.store.recoverTurns();
    if (recovered > 0) this.#deps.log.info('turns of an earlier process recovered', { recovered });
    try {
      await this.#loop.run(this.#options.signal);
    } finally {
      this.#rest?.[Symbol.dispose]();
    }
  }

  pump(): void {
    this.#loop.wake();
  }

  turnOf(session: SessionKey): RunningTurn | undefined {
    return this.#bySession.get(session);
  }

  /** Another process wrote: anything may be due, anyone may have a follower. */
  onOutsideChange(): void {
    for (const turn of this.#running) turn.announceFollower();
    this.pump();
  }

  #room(): number {
    return this.#deps.shortage.room(this.#deps.clock.monotonic(), this.#running.size);
  }

  async #perform(claim: ClaimedTurn, place: Place): Promise<void> {
    const turn = new RunningTurn(claim, this.#deps.store);
    this.#running.add(turn);
    this.#bySession.set(turn.session, turn);
    if (this.#loop.isStopping) turn.abort(new TurnInterrupted('shutting down'));
    try {
      await this.#end(turn, await this.#outcomeOf(turn), place);
    } finally {
      this.#running.delete(turn);
      this.#loop.wake();
      if (this.#bySession.get(turn.session) === turn) this.#bySession.delete(turn.session);
    }
  }

  async #outcomeOf(turn: RunningTurn): Promise<TurnEnding> {
    if (turn.deaths >= this.#options.maxAttempts * DEATHS_PER_FAILURE) {
      return this.#poisoned(turn, 'the process ended during each try');
    }
    try {
      const { throughSeq, outbound, note } = await this.#handler(turn);
      this.#deps.shortage.eased();
      return { kind: 'done', throughSeq, outbound: named(turn, outbound), note };
    } catch (error) {
      return this.#failedTry(turn, error);
    }
  }

  #failedTry(turn: RunningTurn, error: unknown): TurnEnding {
    const { log, clock } = this.#deps;
    const { attempt, session } = turn;
    const why: unknown = turn.signal.reason;
    if (why instanceof TurnCancelled) return { kind: 'cancelled', reason: why.message };
    if (why instanceof TurnInterrupted) return { kind: 'released' };
    const reason = error instanceof Error ? error.message : String(error);
    if (error instanceof TurnDeferred) return { kind: 'deferred', at: error.until, reason };
    const what = shortageOf(error);
    const waitedMs = clock.now() - turn.messages[0].message.receivedAt;
    if (what !== undefined && waitedMs < BLAMELESS_MS) {
      const { waitMs, isNew } = this.#deps.shortage.met(clock.monotonic(), this.#running.size);
      if (isNew) {
        log.error('the process is short of something, turns wait', { what, error });
        this.#options.onShortage?.(what);
      }
      this.#rest?.[Symbol.dispose]();
      this.#rest = clock.timer(waitMs, () => this.pump());
      return { kind: 'deferred', at: clock.now() + waitMs, reason };
    }
    if (turn.failures + 1 < this.#options.maxAttempts) {
      const waitMs = retryDelayMs(turn.failures + 1);
      log.warn('turn failed', { session, turnId: turn.id, attempt, waitMs, error });
      return { kind: 'retry', at: clock.now() + waitMs, reason };
    }
    return this.#poisoned(turn, reason);
  }

  #poisoned(turn: RunningTurn, reason: string): TurnEnding {
    const { id, session, attempt } = turn;
    this.#deps.log.error('message set aside', { session, turnId: id, attempt, reason });
    return { kind: 'dead', reason, outbound: named(turn, this.#options.onPoison(turn)) };
  }

  async #end(turn: RunningTurn, ending: TurnEnding, place: Place): Promise<void> {
    turn.isEnding = true;
    const ended = this.#deps.store.endTurn(turn, ending);
    if ('outbound' in ending) this.#deps.onQueued(ending.outbound);
    place.free();
    if ((await ended) === 'ended') return;
    turn.abort(new TurnInterrupted('the claim was lost'));
    this.#deps.log.warn('turn ended after its claim was lost', { turnId: turn.id });
  }

  #interrupt(): void {
    for (const turn of this.#running) turn.abort(new TurnInterrupted('shutting down'));
  }
}

function named(turn: RunningTurn, drafts: readonly OutboundDraft[]): readonly OutboundMessage[] {
  return drafts.map((draft, ordinal) => ({ ...draft, id: answerIdOf(turn.id, ordinal) }));
}

// One turn while its handler runs: its signal, its followers. Knows from the bus's announcements
// whether a follower may wait, so that `join` costs nothing where none does.

export class RunningTurn implements Turn {
  readonly id: TurnId;
  readonly session: SessionKey;
  readonly chat: ChatRef;
  readonly epoch: number;
  readonly attempt: number;
  readonly failures: number;
  readonly deaths: number;
  readonly messages: Turn['messages'];
  readonly firstSeq: number;
  /** Its writes are under way; its place belongs to the next turn. */
  isEnding = false;
  readonly #store: BusStore;
  readonly #controller = new AbortController();
  readonly #waiting = new Set<() => void>();
  #hasFollower = false;

  constructor(claim: ClaimedTurn, store: BusStore) {
    this.id = turnIdOf(claim.session, claim.firstSeq);
    this.session = claim.session;
    this.chat = claim.messages[0].message.chat;
    this.epoch = claim.epoch;
    this.attempt = claim.attempt;
    this.failures = claim.failures;
    this.deaths = claim.deaths;
    this.messages = claim.messages;
    this.firstSeq = claim.firstSeq;
    this.#store = store;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
  }

  /** A message of this session was stored behind those of the turn. */
  announceFollower(): void {
    if (this.attempt > 1) return;
    this.#hasFollower = true;
    for (const wake of this.#waiting) wake();
  }

  async join(): Promise<readonly QueuedMessage[]> {
    if (!this.#hasFollower || this.isEnding) return [];
    this.#hasFollower = false;
    const followers = await this.#store.joinTurn(this);
    if (followers !== undefined) return followers;
    this.abort(new TurnInterrupted('the claim was lost'));
    return [];
  }

  arrival(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      if (this.#hasFollower) return resolve();
      const settle = (end: () => void) => {
        this.#waiting.delete(wake);
        signal.removeEventListener('abort', onAbort);
        end();
      };
      const wake = () => settle(resolve);
      const onAbort = () => settle(() => reject(signal.reason));
      this.#waiting.add(wake);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }
}

// Runs turns: claims what is due as long as there are places, hands it to the handler and writes
// down how it ended. A claim counts a try before the handler runs.

import { retryDelayMs } from '../core/delivery.ts';
import type { SessionKey } from '../core/ids.ts';
import type { OutboundDraft, OutboundMessage } from '../core/message.ts';
import { answerIdOf } from '../core/turn-id.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { BusStore, ClaimedTurn, TurnEnding } from '../store/store.ts';
import {
  TurnCancelled,
  TurnDeferred,
  type TurnHandler,
  TurnInterrupted,
  type WorkOptions,
} from './bus.ts';
import { ClaimLoop, type Place } from './claim-loop.ts';
import { RunningTurn } from './running-turn.ts';

const DEATHS_PER_FAILURE = 3;

export type PumpDeps = {
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

  constructor(handler: TurnHandler, options: WorkOptions, deps: PumpDeps) {
    this.#handler = handler;
    this.#options = options;
    this.#deps = deps;
    this.#loop = new ClaimLoop({
      clock: deps.clock,
      places: options.maxOpenTurns,
      stopGraceMs: options.drainMs ?? 0,
      failureGraceMs: 0,
      claim: (places) => deps.store.claimTurns(places),
      perform: (claim, place) => this.#perform(claim, place),
      interrupt: () => this.#interrupt(),
    });
  }

  /** Works until the signal aborts or the store fails, then waits for the turns that run. */
  async run(): Promise<void> {
    const recovered = await this.#deps.store.recoverTurns();
    if (recovered > 0) this.#deps.log.info('turns of an earlier process recovered', { recovered });
    await this.#loop.run(this.#options.signal);
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

  async #perform(claim: ClaimedTurn, place: Place): Promise<void> {
    const turn = new RunningTurn(claim, this.#deps.store);
    this.#running.add(turn);
    this.#bySession.set(turn.session, turn);
    if (this.#loop.isStopping) turn.abort(new TurnInterrupted('shutting down'));
    try {
      await this.#end(turn, await this.#outcomeOf(turn), place);
    } finally {
      this.#running.delete(turn);
      if (this.#bySession.get(turn.session) === turn) this.#bySession.delete(turn.session);
    }
  }

  async #outcomeOf(turn: RunningTurn): Promise<TurnEnding> {
    if (turn.attempt > this.#options.maxAttempts * DEATHS_PER_FAILURE) {
      return this.#poisoned(turn, 'the process ended during each try');
    }
    try {
      const { throughSeq, outbound, note } = await this.#handler(turn);
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

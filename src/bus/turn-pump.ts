// Runs turns: claims what is due as long as there are places, hands it to the handler and writes
// down how it ended. A claim commits together with what woke it (the message that came, the turn
// that ended), so it needs no fsync of its own and still counts a try before the handler runs.

import { retryDelayMs } from '../core/delivery.ts';
import type { SessionKey } from '../core/ids.ts';
import type { OutboundDraft, OutboundMessage } from '../core/message.ts';
import { answerIdOf } from '../core/turn-id.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { BusStore, ClaimedTurn, Claims, TurnEnding } from '../store/store.ts';
import { Alarm } from './alarm.ts';
import { TurnCancelled, type TurnHandler, TurnInterrupted, type WorkOptions } from './bus.ts';
import { RunningTurn } from './running-turn.ts';

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
  readonly #alarm: Alarm;
  readonly #over = Promise.withResolvers<void>();
  #openTurns = 0;
  #claimsUnderWay = 0;
  #isClaimQueued = false;
  #isStopping = false;
  #failure: unknown;

  constructor(handler: TurnHandler, options: WorkOptions, deps: PumpDeps) {
    this.#handler = handler;
    this.#options = options;
    this.#deps = deps;
    this.#alarm = new Alarm(deps.clock, () => this.pump());
  }

  /** Works until the signal aborts or the store fails, then waits for the turns that run. */
  async run(): Promise<void> {
    const { signal, drainMs = 0 } = this.#options;
    const recovered = await this.#deps.store.recoverTurns();
    if (recovered > 0) this.#deps.log.info('turns of an earlier process recovered', { recovered });
    const onAbort = () => this.#stop(drainMs);
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
    this.pump();
    try {
      await this.#over.promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Claims what is due at the end of the batch under way. Cheap where no place is free. */
  pump(): void {
    if (this.#isStopping || this.#isClaimQueued || this.#freePlaces() === 0) return;
    this.#isClaimQueued = true;
    this.#claimsUnderWay += 1;
    const places = () => {
      this.#isClaimQueued = false;
      return this.#isStopping ? 0 : this.#freePlaces();
    };
    const claims = this.#deps.store.claimTurns(places);
    claims
      .finally(() => {
        this.#claimsUnderWay -= 1;
      })
      .then(
        (found) => this.#start(found),
        (error) => this.#fail(error),
      );
  }

  turnOf(session: SessionKey): RunningTurn | undefined {
    return this.#bySession.get(session);
  }

  /** Another process wrote: anything may be due, anyone may have a follower. */
  onOutsideChange(): void {
    for (const turn of this.#running) turn.announceFollower();
    this.pump();
  }

  #freePlaces(): number {
    return Math.max(0, this.#options.maxOpenTurns - this.#openTurns);
  }

  #start({ claimed, nextAt }: Claims<ClaimedTurn>): void {
    for (const claim of claimed) {
      const turn = new RunningTurn(claim, this.#deps.store);
      this.#running.add(turn);
      this.#openTurns += 1;
      this.#bySession.set(turn.session, turn);
      if (this.#isStopping) turn.abort(new TurnInterrupted('shutting down'));
      void this.#perform(turn);
    }
    if (!this.#isStopping && this.#freePlaces() > 0) this.#alarm.set(nextAt);
    this.#checkOver();
  }

  async #perform(turn: RunningTurn): Promise<void> {
    try {
      await this.#end(turn, await this.#outcomeOf(turn));
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#giveUpPlace(turn);
      this.#running.delete(turn);
      if (this.#bySession.get(turn.session) === turn) this.#bySession.delete(turn.session);
      this.#checkOver();
    }
  }

  async #outcomeOf(turn: RunningTurn): Promise<TurnEnding> {
    const { maxAttempts } = this.#options;
    if (turn.attempt > maxAttempts) {
      return this.#poisoned(turn, 'the process ended during each try');
    }
    try {
      const { throughSeq, outbound } = await this.#handler(turn);
      return { kind: 'done', throughSeq, outbound: named(turn, outbound) };
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
    if (attempt < this.#options.maxAttempts) {
      const waitMs = retryDelayMs(attempt);
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

  async #end(turn: RunningTurn, ending: TurnEnding): Promise<void> {
    this.#giveUpPlace(turn);
    const ended = this.#deps.store.endTurn(turn, ending);
    if ('outbound' in ending) this.#deps.onQueued(ending.outbound);
    this.pump();
    if ((await ended) === 'ended') return;
    turn.abort(new TurnInterrupted('the claim was lost'));
    this.#deps.log.warn('turn ended after its claim was lost', { turnId: turn.id });
  }

  /** From here on the next turn may be claimed, in the transaction that ends this one. */
  #giveUpPlace(turn: RunningTurn): void {
    if (turn.isEnding) return;
    turn.isEnding = true;
    this.#openTurns -= 1;
  }

  #stop(drainMs: number): void {
    this.#isStopping = true;
    this.#alarm.set(undefined);
    const interrupt = () => {
      for (const turn of this.#running) turn.abort(new TurnInterrupted('shutting down'));
    };
    if (drainMs === 0) {
      interrupt();
    } else {
      const timer = this.#deps.clock.timer(drainMs, interrupt);
      void this.#over.promise.finally(() => timer[Symbol.dispose]());
    }
    this.#checkOver();
  }

  /** The store failed: whoever supervises this starts again, and what was held is recovered. */
  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#isClaimQueued = false;
    if (!this.#isStopping) this.#stop(0);
    this.#checkOver();
  }

  #checkOver(): void {
    if (this.#isStopping && this.#running.size + this.#claimsUnderWay === 0) this.#over.resolve();
  }
}

function named(turn: RunningTurn, drafts: readonly OutboundDraft[]): readonly OutboundMessage[] {
  return drafts.map((draft, ordinal) => ({ ...draft, id: answerIdOf(turn.id, ordinal) }));
}

// One turn while its handler runs: its signal, its followers. Knows from the bus's announcements
// whether a follower may wait, so that `join` costs nothing where none does.

import type { SessionKey, TurnId } from '../message/ids.ts';
import { turnIdOf } from '../message/ids.ts';
import type { ChatRef } from '../message/message.ts';
import { type QueuedMessage, type Turn, TurnInterrupted } from './bus.ts';
import type { BusStore, ClaimedTurn } from './store/store.ts';

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

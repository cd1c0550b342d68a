// Waits until the person has finished writing: followers within the quiet time join the batch.

import type { Channel } from '../../channels/channel.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { QueuedMessage, Turn } from '../bus/bus.ts';
import type { Batch } from './batch.ts';
import { type CoalescePolicy, coalesceWaitMs } from './rules/coalesce.ts';

export type CoalescerOptions = {
  readonly channel: Channel | undefined;
  readonly policy: CoalescePolicy;
  readonly clock: Clock;
};

export class Coalescer {
  readonly #turn: Turn;
  readonly #batch: Batch;
  readonly #options: CoalescerOptions;

  constructor(turn: Turn, batch: Batch, options: CoalescerOptions) {
    this.#turn = turn;
    this.#batch = batch;
    this.#options = options;
  }

  /** Takes followers in until the chat has been quiet long enough. */
  async collect(): Promise<void> {
    while (await this.#followerInTime()) await this.#batch.join();
  }

  /** Whether a follower that may join comes before the signal aborts. */
  async anyFollower(signal: AbortSignal): Promise<boolean> {
    if (!this.#isOpen) return false;
    return this.#turn.arrival(signal).then(
      () => true,
      () => false,
    );
  }

  async #followerInTime(): Promise<boolean> {
    const waitMs = this.#isOpen ? this.#quietMs() : 0;
    if (waitMs === 0) return false;
    const race = new AbortController();
    const signal = AbortSignal.any([this.#turn.signal, race.signal]);
    const arrival = this.#turn.arrival(signal).then(() => true);
    const quiet = this.#options.clock.sleep(waitMs, signal).then(() => false);
    arrival.catch(() => undefined);
    quiet.catch(() => undefined);
    try {
      return await Promise.race([arrival, quiet]);
    } finally {
      race.abort();
    }
  }

  get #isOpen(): boolean {
    const { channel, policy } = this.#options;
    // A retry answers what its first try was asked, and nothing more.
    // Where no door is, nobody is writing on.
    if (this.#turn.attempt > 1 || channel === undefined || !channel.coalesces) return false;
    return !this.#batch.isClosed && this.#batch.messages.length < policy.maxMessages;
  }

  #quietMs(): number {
    const { channel, policy, clock } = this.#options;
    const [first, ...rest] = this.#batch.messages;
    const limitUnits = channel?.limits.textUnits ?? Number.POSITIVE_INFINITY;
    return coalesceWaitMs(
      [arrivalOf(first), ...rest.map(arrivalOf)],
      policy,
      limitUnits,
      clock.now(),
    );
  }
}

function arrivalOf({ message }: QueuedMessage) {
  const { receivedAt, text, mayContinue = false } = message;
  return { receivedAt, length: text.length, mayContinue };
}

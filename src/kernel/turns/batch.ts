// The messages one turn answers. Followers join in order; a message that is no question for the
// agent (a command, a change of an answered message, a report to somebody else) ends the batch:
// what follows must wait for its effect. A question of another person in a group ends it too: each
// gets an answer of their own.

import type { Channel } from '../../channels/channel.ts';
import { inTime } from '../../lib/async.ts';
import { type Clock, following } from '../../lib/time/clock.ts';
import type { QueuedMessage, Turn } from '../bus/bus.ts';
import type { Commands } from '../commands/commands.ts';
import type { Contributed } from '../contributions.ts';
import type { MessageId } from '../message/ids.ts';
import type { InboundMessage } from '../message/message.ts';
import { withChanges } from '../message/message.ts';
import { personNames } from '../message/message-limits.ts';
import {
  type Arrival,
  type CoalescePolicy,
  coalesceWaitMs,
  isLikelyComplete,
  isPartOfSeveral,
} from './rules/coalesce.ts';

export type BatchTurn = Pick<Turn, 'attempt' | 'messages' | 'join'>;

type BatchDeps = {
  /** Whether a message begins a question of its own, behind those of the turn. */
  readonly isApart?: (
    taken: readonly [QueuedMessage, ...QueuedMessage[]],
    next: QueuedMessage,
  ) => boolean;
  readonly commands: Pick<Commands, 'find'>;
  /**
   * For internal chats: each run of a job counts separately, each turn of a subagent or workflow
   * has its result.
   */
  readonly startedFrom: Contributed['startedFrom'];
};

export type Batch = ReturnType<typeof createBatch>;

export function createBatch(turn: BatchTurn, deps: BatchDeps) {
  const held: QueuedMessage[] = [];
  const [first, ...rest] = turn.messages;
  let taken: [QueuedMessage, ...QueuedMessage[]] = [first];
  add(rest);

  /** Takes new arrivals; returns what may join the turn. */
  async function join(): Promise<readonly QueuedMessage[]> {
    if (held.length > 0) return [];
    return add(await turn.join());
  }

  /**
   * Each message in its current version, as long as the model has seen none. The model may have
   * seen them in an earlier try. False: all were withdrawn.
   */
  function takeChanges(): boolean {
    if (turn.attempt > 1) return true;
    const [first, ...rest] = withChanges(taken);
    if (first === undefined) return false;
    taken = [first, ...rest];
    return true;
  }

  function add(arrived: readonly QueuedMessage[]): readonly QueuedMessage[] {
    const known = new Set([...taken, ...arrived].map(({ message }) => message.id));
    const names = new Set(taken.flatMap(({ message }) => askersOf(message)));
    const joining: QueuedMessage[] = [];
    for (const queued of arrived) {
      const { message } = queued;
      if (standsApart(message, known, deps) || isOfAnother(message, names)) break;
      if (deps.isApart?.(taken, queued) === true) break;
      taken.push(queued);
      joining.push(queued);
    }
    held.push(...arrived.slice(joining.length));
    return joining;
  }

  return {
    join,
    takeChanges,
    /** Messages the turn answers. */
    get messages(): readonly [QueuedMessage, ...QueuedMessage[]] {
      return taken;
    },
    /** The batch accepts no more: a command waits behind it. */
    get isClosed() {
      return held.length > 0;
    },
  };
}

/** The gateway's own messages, for no person. */
const NOBODYS = 'nobody';

function standsApart(
  { amends, reaction, announces, chat, text }: InboundMessage,
  known: ReadonlySet<MessageId>,
  { commands, startedFrom }: BatchDeps,
): boolean {
  if (amends !== undefined) return !known.has(amends.id);
  if (reaction !== undefined || announces !== undefined) return true;
  return startedFrom(chat.channel) !== undefined || commands.find(text) !== undefined;
}

/**
 * In a group the turns of several people alternate; a subagent reports to the people who started
 * it.
 */
function isOfAnother(message: InboundMessage, names: ReadonlySet<string>): boolean {
  const { sender, group } = message;
  const isSomebodys = sender.kind === 'person' ? group !== undefined : sender.source === 'subagent';
  if (!isSomebodys) return false;
  return !askersOf(message).some((name) => names.has(name));
}

/** The names of the people behind a message. */
function askersOf({ sender, chat }: InboundMessage): readonly string[] {
  return sender.kind === 'person' ? personNames({ sender, chat }) : (sender.paidBy ?? [NOBODYS]);
}

/** Whether a message came too late to be part of the same question as those before it. */
export function comesApart(
  taken: readonly [QueuedMessage, ...QueuedMessage[]],
  { message }: QueuedMessage,
  policy: CoalescePolicy,
  limitUnits: number,
): boolean {
  const [first, ...rest] = taken;
  const arrivals = [arrivalOf(first), ...rest.map(arrivalOf)] as const;
  // A clock that was set back lets nothing arrive before what came first.
  const { receivedAt } = arrivals.at(-1) ?? arrivals[0];
  const at = Math.max(receivedAt, message.receivedAt);
  return coalesceWaitMs(arrivals, policy, limitUnits, at) === 0;
}

// Waits until the person has finished writing: followers within the quiet time join the batch.

type CoalescerOptions = {
  readonly channel: Channel | undefined;
  readonly policy: CoalescePolicy;
  readonly clock: Clock;
};

export type Coalescer = ReturnType<typeof createCoalescer>;

export function createCoalescer(turn: Turn, batch: Batch, options: CoalescerOptions) {
  /** Accepts followers until the chat has been quiet long enough. */
  async function collect(): Promise<void> {
    while (await followerInTime()) await batch.join();
  }

  /** Whether a follower that may join arrives before the signal aborts. */
  async function anyFollower(signal: AbortSignal): Promise<boolean> {
    if (!isOpen()) return false;
    return turn.arrival(signal).then(
      () => true,
      () => false,
    );
  }

  async function followerInTime(): Promise<boolean> {
    const waitMs = isOpen() ? quietMs() : 0;
    if (waitMs === 0) return false;
    const wait = following(turn.signal);
    const arrival = turn.arrival(wait.signal);
    arrival.catch(() => undefined);
    try {
      return (await inTime(options.clock, waitMs, arrival)) !== 'late';
    } finally {
      wait.abort();
    }
  }

  function isOpen(): boolean {
    const { channel, policy } = options;
    // A retry answers the messages of its first try only. Without a channel, nobody continues to
    // write.
    if (turn.attempt > 1 || channel === undefined || !channel.coalesces) return false;
    return !batch.isClosed && batch.messages.length < policy.maxMessages;
  }

  function quietMs(): number {
    const { policy, clock } = options;
    return coalesceWaitMs(arrivals(), policy, limitUnits(), clock.now());
  }

  function arrivals(): readonly [Arrival, ...Arrival[]] {
    const [first, ...rest] = batch.messages;
    return [arrivalOf(first), ...rest.map(arrivalOf)];
  }

  const limitUnits = () => options.channel?.limits.textUnits ?? Number.POSITIVE_INFINITY;

  return {
    collect,
    anyFollower,
    /**
     * Whether there is a quiet time to wait for, but a follower is unlikely. `before`: see
     * `isLikelyComplete`.
     */
    mayStartAtOnce: (before: number | undefined): boolean =>
      isOpen() && quietMs() > 0 && isLikelyComplete(arrivals(), before, limitUnits()),
    /**
     * Waits until the chat has been quiet long enough, and accepts no followers. @throws the
     * signal's reason
     */
    async quiet(signal: AbortSignal): Promise<void> {
      await options.clock.sleep(isOpen() ? quietMs() : 0, signal);
    },
  };
}

function arrivalOf({ message }: QueuedMessage): Arrival {
  const { receivedAt, text, mayContinue = false } = message;
  return { receivedAt, length: text.length, mayContinue, isPart: isPartOfSeveral(message) };
}

// CONTRACT of the message bus. Two durable topics, inbound and outbound, in one store; they are the
// inbox and the outbox. Every method is one durable transaction; a resolved promise means "on disk,
// fsynced". Every implementation passes test/contract/bus.ts.

import type { SetAside, UnknownPolicy } from '../message/delivery.ts';
import type {
  AccountId,
  AccountName,
  AccountRef,
  ChannelName,
  MessageId,
  NativeId,
  SessionKey,
  TurnId,
  UserId,
} from '../message/ids.ts';
import type {
  ChatRef,
  InboundMessage,
  LiveUpdate,
  OutboundDraft,
  OutboundMessage,
} from '../message/message.ts';

export type { UnknownPolicy } from '../message/delivery.ts';

/** The decision about one message before it reaches the bus. */
export type InboundEntry =
  | { readonly kind: 'queue'; readonly message: InboundMessage }
  /**
   * Stored only for dedupe and `trace`: refused, buffered or handled elsewhere. Its text is not
   * stored.
   */
  | { readonly kind: 'record'; readonly message: InboundMessage; readonly gate: string };

/**
 * An account's position in the platform's stream, committed together with the messages before it.
 */
export type ChannelCursor = AccountRef & {
  /** Opaque to the bus; the channel writes and reads it. */
  readonly value: string;
};

/**
 * `applied`: a change (`InboundMessage.amends`) of a message that still waited, which has the new
 * text now or is withdrawn; or one without effect, because its target is unknown, somebody else's
 * or the same. A later change is `accepted`: it waits in the session as a message of its own.
 */
export type AcceptResult = 'accepted' | 'duplicate' | 'applied';

/** An inbound message with its place in the session's order. */
export type QueuedMessage = { readonly seq: number; readonly message: InboundMessage };

/** The unit of work: all waiting messages of one session, claimed by one worker under an epoch. */
export interface Turn {
  /** `session#firstSeq`; the same on every retry. */
  readonly id: TurnId;
  readonly session: SessionKey;
  readonly chat: ChatRef;
  readonly epoch: number;
  /** 1 on the first try. A process that died while it held the turn counts as a try. */
  readonly attempt: number;
  readonly messages: readonly [QueuedMessage, ...QueuedMessage[]];
  /** Aborted by `cancel` (reason: TurnCancelled), else by TurnInterrupted. */
  readonly signal: AbortSignal;
  /**
   * Claims the session's followers that have arrived since, in order; empty if there are none. A
   * retried turn (attempt > 1) gets none: its second try has the messages of the first, so that the
   * recorded results of a dead process are used once; later tries have only the first message, so
   * that one that fails every turn is isolated. Followers that a dead try had already shown the
   * model still belong to the turn: the handler knows them and reports them in `throughSeq`.
   */
  join(): Promise<readonly QueuedMessage[]>;
  /** Resolves when a follower waits that `join` would return; rejects when `signal` aborts. */
  arrival(signal: AbortSignal): Promise<void>;
}

export type TurnResult = {
  /**
   * Every message of the session up to and including this sequence number becomes done: also one
   * that an earlier try of the turn had and this one did not get.
   */
  readonly throughSeq: number;
  /** Become outbound messages `turnId/0`, `turnId/1`, ... */
  readonly outbound: readonly OutboundDraft[];
  /** Why the first message had no result, for its trace. */
  readonly note?: string;
};

/**
 * Resolving commits inbox-done and outbox-queued in one fenced transaction. Throwing is a failed
 * try.
 */
export type TurnHandler = (turn: Turn) => Promise<TurnResult>;

export type WorkOptions = {
  readonly signal: AbortSignal;
  /** Sessions held at once; the handler takes the model permit later. */
  maxOpenTurns(): number;
  /**
   * Failed tries before the message becomes a dead letter. A process mostly ends for reasons
   * unrelated to the message: it is a suspect after three deaths, and becomes a dead letter after
   * twice as many deaths as this while no other suspect was running.
   */
  readonly maxAttempts: number;
  /** How long running turns may continue after `signal` aborts, milliseconds; default 0. */
  readonly drainMs?: number;
  /** The process is short of open files, memory, disk space or processes; the turns wait. */
  onShortage?(what: string): void;
  /** The text for the chat when a message becomes a dead letter after its last failed try. */
  onPoison(turn: Turn): readonly OutboundDraft[];
};

export type DeliverOptions = { readonly signal: AbortSignal; readonly concurrency: number };

/** Best-effort snapshots of running turns; a slow reader sees only the newest per chat. */
export interface LiveTopic {
  publish(update: LiveUpdate): void;
  /** Every update of the account, newest per turn; ends when the signal aborts. */
  subscribe(account: AccountName, signal: AbortSignal): AsyncIterable<LiveUpdate>;
}

/** Why a turn's signal was aborted by `cancel`. */
export class TurnCancelled extends Error {
  override readonly name: string = 'TurnCancelled';
}

/** An owner answers in the agent's place: what the turn has written is not sent. */
export class TurnTakenOver extends TurnCancelled {
  override readonly name = 'TurnTakenOver';
}

/**
 * Why a turn's signal was aborted at shutdown or when its claim was lost. The handler throws: its
 * messages stay in the queue and the try does not count.
 */
export class TurnInterrupted extends Error {
  override readonly name = 'TurnInterrupted';
}

/** Thrown by a handler whose turn may not run yet: its messages wait and the try does not count. */
export class TurnDeferred extends Error {
  override readonly name = 'TurnDeferred';
  /** Epoch milliseconds. */
  readonly until: number;
  constructor(reason: string, until: number) {
    super(reason);
    this.until = until;
  }
}

/** When one is reached the channels stop acknowledging. */
export type BusLimits = {
  /** Waiting messages of one session, without those of its running turn. */
  readonly maxPendingPerChat: number;
  readonly maxPending: number;
};

/** A platform message that shows a turn's answer while it is being written. */
export type LiveDraft = {
  readonly turnId: TurnId;
  readonly chat: ChatRef;
  /** Undefined if it was about to be placed and the outcome was not recorded. */
  readonly nativeId?: NativeId;
  readonly replyTo?: MessageId;
};

/** A row of a scope of the store; an undefined value deletes it. */
export type RowChange = {
  readonly scope: string;
  readonly key: string;
  readonly value: string | undefined;
};

/** A row of a collection to write in the transaction of another write. */
export type RowWrite = RowChange & {
  /** Call after the commit: updates the memory of its collection. */
  committed(): Promise<void>;
};

/** Data about messages in the queues: read through the bus, stored by its store. */
export interface BusRecords {
  cursor(channel: ChannelName, account: AccountId): Promise<string | undefined>;
  /** A sent message came back undeliverable: recorded in its trace. The first report counts. */
  markBounced(id: MessageId, reason: string): Promise<'marked' | 'known' | 'not sent'>;
  /** The turn's draft, including one that an earlier process placed. */
  draft(turnId: TurnId): Promise<LiveDraft | undefined>;
  /**
   * Drafts whose turn is over and has no final text to be sent; remove them, then drop their rows.
   */
  orphanDrafts(account: AccountName): Promise<readonly LiveDraft[]>;
  forgetDraft(turnId: TurnId): Promise<void>;
  /** Whether something is still to be sent in the chat. */
  isDelivering(chat: ChatRef): Promise<boolean>;
  /** A message as it was stored; undefined once its content was deleted (see `gc`). */
  inbound(id: MessageId): Promise<InboundMessage | undefined>;
  /** An outbound text in any state; undefined once its content was deleted. */
  outbound(id: MessageId): Promise<SentText | undefined>;
  /** The outbound text that is in the chat under the platform's id. */
  sentAs(session: SessionKey, part: NativeId): Promise<SentText | undefined>;
  /** All texts of a turn: drops those not sent yet, returns those that were sent. */
  takeBack(turnId: TurnId): Promise<TakenBack>;
  /**
   * Messages of an account that certainly did not arrive, oldest first, 100 at most: those that
   * wait, and those set aside since then (epoch milliseconds).
   */
  stranded(account: AccountName, since: number): Promise<readonly OutboundMessage[]>;
  dead(): Promise<readonly DeadLetter[]>;
  /** Deletes dead letters, keeping their ids for dedupe; returns how many. */
  drop(ids: readonly MessageId[]): Promise<number>;
  /** The life of a message; `last` is the newest inbound one. */
  trace(wanted: MessageId | 'last' | LastMessage): Promise<Trace | undefined>;
  stats(): Promise<BusStats>;
  /**
   * Deletes the content of messages finished longer ago than the window and returns how many; their
   * ids stay known for dedupe while they are among the newest 100,000.
   */
  gc(windowMs: number): Promise<number>;
}

export interface MessageBus extends BusRecords, AsyncDisposable {
  /**
   * Stores messages and the channel's cursor together. A known id is a duplicate and changes
   * nothing.
   * @throws BusFullError if a limit was reached before: nothing was stored, do not acknowledge
   * upstream. A batch that starts below the limits is accepted whole. `rows` are written in the
   * same transaction, unless all of the batch are duplicates.
   */
  accept(
    batch: readonly InboundEntry[],
    options?: { readonly cursor?: ChannelCursor; readonly rows?: readonly RowWrite[] },
  ): Promise<readonly AcceptResult[]>;
  /**
   * Runs turns until the signal aborts, one per session at a time; then waits for those running.
   */
  work(handler: TurnHandler, options: WorkOptions): Promise<void>;
  /** Delivers one channel's messages until the signal aborts, in order per chat. */
  deliver(courier: Courier, options: DeliverOptions): Promise<void>;
  /** Queues a message outside a turn. Its chosen id makes a repeat a no-op. */
  send(message: OutboundMessage): Promise<'queued' | 'duplicate'>;
  readonly live: LiveTopic;
  /** Records that the turn's draft is about to be placed, so that a later process looks for it. */
  placingDraft(turnId: TurnId, chat: ChatRef, replyTo: MessageId | undefined): Promise<void>;
  /**
   * Records the turn's draft in the chat: it is passed to `SendContext.draft` of the message that
   * `finalizes` the turn, and dropped when that message was sent.
   */
  recordDraft(turnId: TurnId, chat: ChatRef, nativeId: NativeId): Promise<void>;
  /**
   * Withdraws the session's waiting messages, aborts its running turn, and sends no further part of
   * its turns' answers. A turn that throws after that is withdrawn too; one that returns a result
   * is finished with it.
   */
  cancel(session: SessionKey, reason: string): Promise<CancelResult>;
  /** Runs `run` while this process leads the resource: one poller per account. */
  lead(
    resource: string,
    run: (signal: AbortSignal, epoch: number) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void>;
  /** Sends the other message instead; `too late` if this one may have been sent. */
  divert(id: MessageId, instead: OutboundMessage): Promise<'diverted' | 'too late'>;
  /** Puts dead letters back in their queues; returns how many. */
  retry(ids: readonly MessageId[]): Promise<number>;
}

// CONTRACT of a courier, which sends messages: the bus passes them to it, one try at a time, and
// gets the outcome. Part of bus.ts.

export type Receipt = {
  /** Ids of the messages now in the chat, in order. */
  readonly nativeIds: readonly NativeId[];
};

export type SendContext = {
  readonly signal: AbortSignal;
  /** 1 on the first try. */
  readonly attempt: number;
  /** The time for which the text is made, epoch milliseconds: fixed once a part has arrived. */
  readonly textAt: number;
  /** It is so late that it should show what it answers. */
  readonly isLate?: true;
  /** Parts that an earlier try certainly delivered; never sent again. */
  readonly sentParts: readonly NativeId[];
  /** An earlier try may have arrived; a channel that sends again marks the text. */
  readonly repeatsUnknown: boolean;
  /** The platform message that shows this turn's live draft and should become the final text. */
  readonly draft?: NativeId;
  /**
   * Durably records the start of a request that must not be repeated unmarked. If the channel
   * `announcesRequests`, call it right before each one; until then the try is certainly not in
   * doubt.
   * @throws DeliveryError not_sent if the message must not be sent any more
   */
  requestBegins(): Promise<void>;
  /**
   * Durably records that the next part is in the chat; the last one together with the send's end.
   */
  partSent(id: NativeId, isLast?: boolean): Promise<void>;
};

/** Whether messages can be sent now, if sending needs a connection that comes and goes. */
export interface Readiness {
  readonly isReady: boolean;
  /** Calls back each time it becomes ready, until disposed. */
  onReady(call: () => void): Disposable;
}

/** Carries one account's outbound messages, in order per chat. */
export interface Courier {
  readonly account: AccountName;
  readonly onUnknown: UnknownPolicy;
  /** How long a message is worth delivering, milliseconds. */
  readonly lifetimeMs: number;
  /** While it is not ready messages wait without a try. Absent: a try is always useful. */
  readonly readiness?: Readiness;
  /** It calls `requestBegins`; otherwise a try may have arrived as soon as it is claimed. */
  readonly announcesRequests?: true;
  /** @throws DeliveryError */
  send(message: OutboundMessage, context: SendContext): Promise<Receipt>;
  /** Whether the platform has this message; undefined if it cannot tell yet. */
  reconcile?(
    message: OutboundMessage,
    signal: AbortSignal,
  ): Promise<Receipt | 'absent' | undefined>;
  /**
   * Called synchronously when a message is given up: what it queues is stored in the same
   * transaction.
   */
  setAside?(message: OutboundMessage, aside: SetAside): void;
}

// What the bus reports about messages and texts that it holds: part of its contract, see bus.ts.

/** The state of an outbound text. */
export type SentText = {
  readonly id: MessageId;
  readonly chat: ChatRef;
  readonly markdown: string;
  /** Number of its files. */
  readonly files: number;
  /** The platform's ids of its messages in the chat, in order. */
  readonly parts: readonly NativeId[];
};

export type TakenBack = {
  readonly sent: readonly SentText[];
  /** One of them is being sent at the moment: it may still arrive. */
  readonly isUnderWay: boolean;
};

export type CancelResult = {
  readonly withdrawn: number;
  readonly running: boolean;
  /** Answers that were not sent, or only partly, and are not sent any further. */
  readonly unsent: number;
};

export type DeadLetter = {
  readonly id: MessageId;
  readonly direction: 'inbound' | 'outbound';
  readonly session: SessionKey;
  /** `unknown`: an outbound message whose arrival is unknown. */
  readonly state: 'dead' | 'unknown';
  readonly reason: string;
  readonly attempts: number;
  /** First 80 characters of the text. */
  readonly excerpt: string;
  readonly at: number;
};

/** The newest message of a person in a session that is no command, except one. */
export type LastMessage = {
  readonly session: SessionKey;
  readonly besides: MessageId;
  /** If several people write: whose. */
  readonly by?: UserId;
};

export type TraceStep = { readonly at: number; readonly what: string; readonly detail?: string };
export type Trace = {
  readonly id: MessageId;
  readonly direction: 'inbound' | 'outbound';
  readonly session: SessionKey;
  readonly state: string;
  readonly turnId?: TurnId;
  readonly steps: readonly TraceStep[];
  /** Traces of the answers to an inbound message. */
  readonly answers: readonly Trace[];
};

export type BusStats = {
  readonly pending: number;
  readonly running: number;
  readonly outboundQueued: number;
  readonly dead: number;
  readonly unknown: number;
  /** Epoch milliseconds of the oldest waiting message, undefined if there is none. */
  readonly oldestPendingAt: number | undefined;
};

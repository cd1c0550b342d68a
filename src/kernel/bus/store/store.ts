// CONTRACT of durable state: scoped key-value rows, and the messages of the bus. Channels store
// cursors and thread data here, the gateway its session settings and pairings. A resolved write is
// on disk, fsynced.

import type { Attachment } from '../../message/attachment.ts';
import type { DeliveryHistory, Settlement } from '../../message/delivery.ts';
import { NanobotError } from '../../message/errors.ts';
import type {
  AccountName,
  MediaId,
  MessageId,
  NativeId,
  SessionKey,
  TurnId,
} from '../../message/ids.ts';
import type { ChatRef, OutboundMessage } from '../../message/message.ts';
import type { Holds } from '../../sessions/rules/forgetting.ts';
import type {
  AcceptResult,
  BusLimits,
  BusRecords,
  CancelResult,
  ChannelCursor,
  InboundEntry,
  LiveDraft,
  QueuedMessage,
  RowChange,
} from '../bus.ts';
import type { NodeReport, SharedStore } from './shared.ts';
import type { TextIndex } from './text-index.ts';

export type KeyValueEntry = { readonly key: string; readonly value: string };
/** An undefined value deletes. */
export type KeyValueChange = { readonly key: string; readonly value: string | undefined };

/** Changes one row from one value to another; undefined: no row. */
export type RowSwap = {
  readonly key: string;
  readonly from: string | undefined;
  readonly to: string | undefined;
};

/**
 * What becomes of rows, by their current values. It is pure and may run again: what it changes is
 * only what it returns.
 */
export type RowsStep<T> = (read: (keys: readonly string[]) => ReadonlyMap<string, string>) => {
  readonly rows: readonly KeyValueChange[];
  readonly result: T;
};

/** Rows of one scope. A resolved write is on disk. Values are opaque text, usually JSON. */
export interface KeyValueStore {
  get(key: string): Promise<string | undefined>;
  /** Without waiting for writes under way: as last committed, on the disk or not. */
  getCommitted(key: string): Promise<string | undefined>;
  set(key: string, value: string): Promise<void>;
  /** Several rows in one transaction. */
  setMany(rows: readonly KeyValueChange[]): Promise<void>;
  /**
   * Compare-and-set: writes the row, and in the same transaction the others, only if it is stored
   * as `from`. Returns whether it was.
   */
  swap(row: RowSwap, others: readonly RowChange[]): Promise<boolean>;
  /** Reads rows and writes others in one transaction, in which nobody else writes. */
  update<T>(step: RowsStep<T>): Promise<T>;
  delete(key: string): Promise<void>;
  /**
   * Rows whose key starts with the prefix, in key order (`newestFirst`: in descending key order).
   * `after` continues after a key.
   */
  list(
    prefix: string,
    options?: { readonly limit?: number; readonly after?: string; readonly newestFirst?: boolean },
  ): Promise<readonly KeyValueEntry[]>;
  /**
   * Deletes rows of the prefix last written before `before` (epoch milliseconds); returns how many.
   */
  expire(prefix: string, before: number): Promise<number>;
}

export interface StateStore {
  /**
   * Scopes never see each other's keys. `ledBy`: only the process that leads it may write.
   * @throws LeadLostError on a write of another one
   */
  scope(name: string, ledBy?: string): KeyValueStore;
}

/** A claimed turn; writes under a lost hold change nothing. */
export type TurnHold = {
  readonly session: SessionKey;
  readonly epoch: number;
  readonly firstSeq: number;
};

export type ClaimedTurn = TurnHold & {
  /** Number of tries of this turn, including this one. */
  readonly attempt: number;
  /** Tries that ended in a failure; the others ended with their process. */
  readonly failures: number;
  /** How often the process ended while this was the only running suspect. */
  readonly deaths: number;
  readonly messages: readonly [QueuedMessage, ...QueuedMessage[]];
};

export type TurnEnding =
  | {
      readonly kind: 'done';
      readonly throughSeq: number;
      readonly outbound: readonly OutboundMessage[];
      /** About the first message, for its trace. */
      readonly note?: string | undefined;
    }
  | { readonly kind: 'retry'; readonly at: number; readonly reason: string }
  /** Waits until then; the try does not count. */
  | { readonly kind: 'deferred'; readonly at: number; readonly reason: string }
  /** Back in the queue; the try does not count. */
  | { readonly kind: 'released' }
  /** The first message becomes a dead letter; the others wait for the next turn. */
  | {
      readonly kind: 'dead';
      readonly reason: string;
      readonly outbound: readonly OutboundMessage[];
    }
  /** All messages of the turn are withdrawn. */
  | { readonly kind: 'cancelled'; readonly reason: string };

/**
 * Lines of a session file that are durable before they are in it. Their position, in bytes, is
 * final: writing them there again changes nothing.
 */
export type NewEntryRow = {
  readonly session: SessionKey;
  readonly file: string;
  readonly place: number;
  readonly text: string;
  /** Of a row that begins a file: where the conversation ended before. */
  readonly after?: EntryEnd | undefined;
};

/** Where a conversation ends: a file and its size with all rows. */
export type EntryEnd = { readonly file: string; readonly size: number };

/** Another process has written to the conversation since it was read. */
export class StaleEntriesError extends NanobotError {
  override readonly name = 'StaleEntriesError';
  constructor() {
    super('session_changed', 'another process has written to the conversation');
  }
}

/**
 * Conversations that several processes write (docs/adr/0041): rows stay, in their file or not, until
 * a newer file of the session begins, so that a turn reads no file.
 */
export interface SharedEntries {
  end(session: SessionKey): Promise<EntryEnd | undefined>;
  /** In the order in which they were written. */
  rows(session: SessionKey): Promise<readonly EntryRow[]>;
  /** Takes in what is in a file; nothing where the session has rows. */
  adopt(row: NewEntryRow): Promise<void>;
  /** Removes the rows of a session, or of all, that are in their files. */
  dropMoved(session?: SessionKey): Promise<void>;
  /** Runs while no other process moves rows or changes files of conversations. */
  alone<T>(work: () => Promise<T>): Promise<T>;
}

export type EntryRow = Omit<NewEntryRow, 'after'> & { readonly ord: number };

/** The session journal, see docs/adr/0025. Each operation is one transaction. */
export interface EntryRows {
  /** With `epoch`, writes only while it holds the session; returns whether they were written. */
  writeEntries(rows: readonly NewEntryRow[], epoch: number | undefined): Promise<boolean>;
  /** Those after `after`, in the order in which they were written. */
  entries(range: {
    readonly after: number;
    readonly limit: number;
    readonly session?: SessionKey | undefined;
  }): Promise<readonly EntryRow[]>;
  entryCounts(): Promise<ReadonlyMap<SessionKey, number>>;
  /** Updates their position and text. */
  changeEntries(rows: readonly EntryRow[]): Promise<void>;
  dropEntries(rows: readonly EntryRow[]): Promise<void>;
  /** Absent: one process writes them. */
  readonly sharedEntries?: SharedEntries;
}

/** A claimed delivery; the attempt number fences an abandoned try. */
export type DeliveryHold = { readonly id: MessageId; readonly attempt: number };

export type ClaimedDelivery = DeliveryHold &
  DeliveryHistory & {
    readonly message: OutboundMessage;
    /** Start of the try whose text counts, epoch milliseconds: fixed once a part has arrived. */
    readonly textAt: number;
    /** A request may have been running when its process ended. */
    readonly isRequesting: boolean;
    readonly sentParts: readonly NativeId[];
    readonly draft: NativeId | undefined;
  };

/** `nextAt`: when the next waiting item is due, epoch milliseconds. */
export type Claims<T> = { readonly claimed: readonly T[]; readonly nextAt: number | undefined };

/**
 * The bus's two topics as durable operations, each one transaction. The two claims run after all
 * other operations issued in the same event-loop turn and commit with them; `places` is evaluated
 * when they begin: a claim does not see what is issued from then on.
 */
export interface BusStore extends BusRecords {
  accept(
    batch: readonly InboundEntry[],
    options: {
      readonly cursor: ChannelCursor | undefined;
      readonly limits: BusLimits;
      /** Written in the same transaction, unless all of the batch are duplicates. */
      readonly rows?: readonly RowChange[];
    },
  ): Promise<readonly AcceptResult[]>;

  /** Returns the turns of an earlier process to the queue. Their tries stay counted. */
  recoverTurns(): Promise<number>;
  /** Resolves when what was claimed is on the disk. @throws StoreError if it cannot be */
  stored(): Promise<void>;
  /**
   * Resolves when it is committed, see `stored`.
   * @param leaveMs how long a due session is left to other processes
   */
  claimTurns(
    places: () => number,
    leaveMs?: (session: SessionKey) => number,
  ): Promise<Claims<ClaimedTurn>>;
  /** The session's followers, now part of the turn; undefined if the hold was lost. */
  joinTurn(hold: TurnHold): Promise<readonly QueuedMessage[] | undefined>;
  /** `entries` of its session are written with it. */
  endTurn(
    hold: TurnHold,
    ending: TurnEnding,
    entries?: readonly NewEntryRow[],
  ): Promise<'ended' | 'lost'>;
  cancel(session: SessionKey, reason: string): Promise<CancelResult>;
  /** Current data of the attachments of a message that waits or runs; false if it is finished. */
  setAttachments(id: MessageId, attachments: readonly Attachment[]): Promise<boolean>;

  queue(message: OutboundMessage): Promise<'queued' | 'duplicate'>;
  /** Takes over what an earlier process was sending. */
  recoverDeliveries(account: AccountName): Promise<readonly ClaimedDelivery[]>;
  /** Resolves when it is committed, see `stored`. */
  claimDeliveries(
    account: AccountName,
    places: () => number,
    announcesRequests?: boolean,
  ): Promise<Claims<ClaimedDelivery>>;
  /** See `SendContext`; false if the message must not be sent any more. */
  requestBegins(hold: DeliveryHold): Promise<boolean>;
  /** The same where the claim has recorded it. */
  isStillWanted(hold: DeliveryHold): Promise<boolean>;
  /** False if no further part of it may be sent. */
  partSent(hold: DeliveryHold, part: NativeId): Promise<boolean>;
  /** Records beforehand that a message in doubt is sent again. */
  markRepeat(hold: DeliveryHold): Promise<void>;
  settle(hold: DeliveryHold, settlement: Settlement): Promise<'settled' | 'lost'>;

  /** See the bus. */
  divert(id: MessageId, instead: OutboundMessage): Promise<'diverted' | 'too late'>;

  recordDraft(draft: LiveDraft): Promise<void>;
  /**
   * Whether anything was sent there, in either topic, as far as rows are kept. Reads all of them.
   */
  hasWrittenTo(chat: ChatRef): Promise<boolean>;
  retry(ids: readonly MessageId[]): Promise<number>;
  /** Contents named by messages that wait, run or are still to be sent. */
  neededMedia(): Promise<readonly MediaId[]>;

  /** Whether another process has written since the last call. */
  changedOutside(): boolean;
}

/** `damaged`: the copy has a damaged page, so the original has it too. */
export type CopyResult = 'whole' | 'damaged';

/** `texts`: how many were erased. `underWay`: where answers with the words are still to be sent. */
export type Forgotten = { readonly texts: number; readonly underWay: readonly ChatRef[] };

/** State in one file of this machine, or in a database. */
export interface EmbeddedStore extends StateStore, BusStore, EntryRows, AsyncDisposable {
  /** The database with its version, without a password; absent for a file. */
  readonly server?: string;
  /** The turns of drafts of accounts for which `isKept` is false. */
  draftsBut(isKept: (account: string) => boolean): Promise<readonly TurnId[]>;
  /** Erases texts of messages from these chats, except of those that are waiting or under way. */
  forgetTexts(chats: readonly string[], holds: Holds): Promise<Forgotten>;
  /** Overwrites deleted data in the files, and deletes the snapshots, which still have it. */
  scrub(): Promise<void>;
  /** Copies the database as it is now into another file, beside all other work. */
  copyTo(to: string, signal: AbortSignal): Promise<CopyResult>;
  /** The process is about to end: nothing waits longer than seconds for a server that is away. */
  endSoon?(): void;
  /** How long the disk has been delaying writes. */
  waitMs(): number;
  /** Rejects when the disk did not accept a write; then the file must be reopened. */
  readonly lost: Promise<never>;
  /** Changes once another process has written rows of the scope, or anything; reads no table. */
  revision(scope?: string): number;
  /** Beside the store, for all its processes; absent: it is a file, see `openTextIndex`. */
  readonly textIndex?: TextIndex;
  /** Absent: this process is the only one that runs turns and channels. */
  readonly shared?: SharedStore;
  /** The processes that share the store; absent: nothing is shared. */
  nodes?(): Promise<readonly NodeReport[]>;
}

/** The scope of the report of a recovery that the owners have not got yet, and its key. */
export const RECOVERY_SCOPE = 'recovery';
export const UNTOLD = 'untold';

/** The store cannot be used or a write failed; the message has the remedy. */
export class StoreError extends NanobotError {
  override readonly name = 'StoreError';
  declare readonly code: StoreFailure;
  /** Of a damaged file: what is wrong with it, e.g. `is empty`. */
  readonly damage: string;
  constructor(code: StoreFailure, message: string, cause?: unknown, damage = '') {
    super(code, message, { cause });
    this.damage = damage;
  }
}

type StoreFailure =
  | 'store_damaged'
  | 'store_newer'
  | 'store_full'
  | 'store_forbidden'
  | 'store_busy'
  | 'store_closed'
  | 'store_unreachable'
  | 'store_held'
  | 'store_failed';

/** Another process holds the home; `holder` is its own data, for display only. */
export class HomeLockedError extends NanobotError {
  override readonly name = 'HomeLockedError';
  readonly holder: Readonly<Record<string, unknown>>;
  constructor(message: string, holder: Readonly<Record<string, unknown>>) {
    super('home_locked', message);
    this.holder = holder;
  }
}

// CONTRACT of a channel: a small required part plus optional powers, so that "can edit" and "has an
// edit method" cannot disagree. Shared code never asks for a channel's name; differences are
// declared here. Every channel passes test/contract/channel.ts.

import type {
  ChannelCursor,
  InboundEntry,
  Readiness,
  Receipt,
  SendContext,
  UnknownPolicy,
} from '../kernel/bus/bus.ts';
import type { KeyValueStore } from '../kernel/bus/store/store.ts';
import type { MediaStore } from '../kernel/media/media.ts';
import { NanobotError } from '../kernel/message/errors.ts';
import type { AccountId, ChannelName, MessageId, NativeId } from '../kernel/message/ids.ts';
import type {
  ChatRef,
  InboundMessage,
  LiveUpdate,
  OutboundMessage,
} from '../kernel/message/message.ts';
import type { Logger } from '../lib/logger.ts';
import { t } from '../lib/texts.ts';
import type { Clock } from '../lib/time/clock.ts';

type ChannelLimits = {
  /** Longest text of one platform message, UTF-16 units. */
  readonly textUnits: number;
};

export type ChannelStatus =
  | { readonly kind: 'starting' }
  /** `activeAt`: epoch milliseconds of the last completed poll, IDLE or ping. */
  | { readonly kind: 'running'; readonly activeAt: number; readonly account?: string | undefined }
  | { readonly kind: 'degraded'; readonly reason: string; readonly retryAt?: number | undefined }
  /** Another process of the gateway runs the account. */
  | { readonly kind: 'elsewhere' }
  /** Stays down until a person acts; `remedy` says how. */
  | { readonly kind: 'stopped'; readonly reason: string; readonly remedy: string };

/** `press`: the id of the message that represents the press. Must not block. */
export type ShowOutcome = (press: MessageId, markdown: string) => void;

/** The gateway's interface for a channel. Each account has its own: rows, cursor, status. */
export interface ChannelHost {
  /**
   * Hands over messages and the cursor after them; `record` entries are those that the channel
   * itself refused, with the reason. Resolves once all are durable or refused; only then may the
   * channel acknowledge upstream.
   * @throws BusFullError: nothing was stored, try again later without acknowledging.
   */
  receive(
    batch: readonly InboundEntry[],
    options?: {
      readonly cursor?: ChannelCursor;
      /** The outcome of a press, in Markdown, to show at the button; it is sent in the chat too. */
      readonly pressed?: ShowOutcome;
    },
  ): Promise<void>;
  cursor(): Promise<string | undefined>;
  /**
   * Whether this account is the one that answers a message which several accounts of the channel
   * received: the first that admits the sender. `key` identifies every copy of it. Durable.
   */
  answers(key: string, message: InboundMessage): Promise<boolean>;
  /** Whether admission refuses the message now because nobody let its sender in. */
  isUnknownSender(message: InboundMessage): Promise<boolean>;
  /** Whether admission lets its sender in now, as more than a guest. */
  isTrusted(message: InboundMessage): Promise<boolean>;
  report(status: ChannelStatus): void;
  /** Notifies the owner of a problem with this account, on another one. */
  alert(text: string): void;
  /** Sends the owner another notice: on this account if it reaches them, else elsewhere. */
  tell(text: string): void;
  /**
   * Aborts at a graceful stop: the channel accepts nothing more, while running answers may still be
   * sent. A channel that sends without `run` returns from it then.
   */
  readonly closing: AbortSignal;
  /**
   * Records that a message of this channel came back undeliverable, for `trace`. Of several reports
   * the first counts.
   */
  bounced(id: MessageId, reason: string): Promise<'marked' | 'known' | 'not sent'>;
  readonly media: MediaStore;
  readonly state: KeyValueStore;
  /** Another process may have written rows of `state`; never called where there is none. */
  onWrittenElsewhere?(hear: () => void): Disposable | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

type DraftOptions = {
  readonly replyTo?: MessageId;
  /** If the platform supports it, placing a draft again under its name finds the existing one. */
  readonly name?: string;
  readonly signal: AbortSignal;
};

/** The platform permits replacing a sent text: answers stream as a draft. */
export interface Editing {
  /** Shortest time between two edits of one chat, milliseconds. */
  readonly minIntervalMs: number;
  /**
   * Placing a draft again soon after under its name, also in another process, finds the existing
   * one: so a draft whose placement was interrupted is found.
   */
  readonly isFoundAgain?: true;
  /** Shows the first draft. @throws DeliveryError */
  place(chat: ChatRef, markdown: string, options: DraftOptions): Promise<NativeId>;
  /** Replaces the draft; a text too long for one message shows its start. @throws DeliveryError */
  edit(chat: ChatRef, draft: NativeId, markdown: string, signal: AbortSignal): Promise<void>;
  /**
   * Shows the end of a text that is too long after the draft; call it after `edit`. Returns the
   * draft that represents both from now on. @throws DeliveryError
   */
  editEnd?(
    chat: ChatRef,
    draft: NativeId,
    markdown: string,
    signal: AbortSignal,
  ): Promise<NativeId>;
  /** Removes a draft that will get no final text. @throws DeliveryError */
  remove(chat: ChatRef, draft: NativeId, signal: AbortSignal): Promise<void>;
}

export interface Typing {
  /** How long the platform shows one notice, milliseconds. */
  readonly intervalMs: number;
  show(chat: ChatRef, signal: AbortSignal): Promise<void>;
}

/** Reactions of the agent on people's messages. */
export interface Reactions {
  /** Set while the agent works on a message; undefined: none. */
  readonly acknowledgement?: string;
  /** Sets the reaction on a message, or removes it. @throws DeliveryError */
  react(to: MessageId, emoji: string | undefined, signal: AbortSignal): Promise<void>;
}

/** Sent messages can be deleted from the chat. */
export interface Retracting {
  /**
   * Deletes these sent messages; one that is already gone is no failure.
   * @throws DeliveryError if the platform keeps one of them, e.g. because it is too old.
   */
  retract(chat: ChatRef, parts: readonly NativeId[], signal: AbortSignal): Promise<void>;
  /** Marks these messages as replaced by a newer answer; they stay readable. */
  markReplaced?(chat: ChatRef, parts: readonly NativeId[], signal: AbortSignal): Promise<void>;
}

/** The channel shows complete snapshots of a turn itself (web page, terminal). Must not block. */
interface LiveView {
  show(update: LiveUpdate): void;
}

/** The steps shown to a person who links an account, in order; the last is `done` or `failed`. */
export type LoginStep =
  | { readonly kind: 'progress'; readonly text: string }
  /** Replaces the code shown before it. `expiresAt`: epoch milliseconds. */
  | { readonly kind: 'show_qr'; readonly qr: string; readonly expiresAt: number }
  /** To be typed on the phone that owns `phoneNumber`. */
  | { readonly kind: 'show_code'; readonly code: string; readonly phoneNumber: string }
  | { readonly kind: 'done'; readonly account: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly remedy: string };

export type LoginOptions = {
  /** International number, digits only: adds a code to type to the QR code. */
  readonly phoneNumber?: string;
};

/** An account is linked by a person's phone rather than by a credential in the configuration. */
export interface Login {
  /**
   * Links an account; a stopped account that is still linked is resumed. A second call ends the
   * first. An unfinished login is cleaned up when the signal aborts.
   */
  begin(options: LoginOptions, signal: AbortSignal): AsyncIterable<LoginStep>;
}

/** A readiness that its owner switches; not ready at first. */
export function createReadiness(): Readiness & { set(isReady: boolean): void } {
  const calls = new Set<() => void>();
  let isReady = false;
  return {
    get isReady() {
      return isReady;
    },
    set(now) {
      const becomesReady = now && !isReady;
      isReady = now;
      if (becomesReady) for (const call of [...calls]) call();
    },
    onReady(call) {
      calls.add(call);
      return { [Symbol.dispose]: () => void calls.delete(call) };
    },
  };
}

/** A file that cannot be fetched now; `reason` ends the sentence "could not be read, ...". */
export class AttachmentError extends NanobotError {
  override readonly name = 'AttachmentError';
  readonly reason: string;
  /** A retry would have the same result. */
  readonly isFinal: boolean;
  constructor(
    code: string,
    reason: string,
    options: { readonly isFinal: boolean; readonly cause?: unknown },
  ) {
    super(code, t`an attachment could not be read, ${reason}`, { cause: options.cause });
    this.reason = reason;
    this.isFinal = options.isFinal;
  }
}

/** A message could not be moved out of the inbox; `reason` is for the person who requested it. */
export class ArchiveError extends NanobotError {
  override readonly name = 'ArchiveError';
  readonly reason: string;
  constructor(code: string, reason: string, cause?: unknown) {
    super(code, t`not archived: ${reason}`, { cause });
    this.reason = reason;
  }
}

/** The channel carries files: sends `OutboundMessage.attachments` and fetches what people send. */
export interface Attachments {
  /** Largest file it sends. */
  readonly maxUploadBytes: number;
  /** All files of a message are sent in one piece of at most this total size. */
  readonly isInOnePiece?: true;
  /** The content of a reference that this channel wrote. @throws AttachmentError */
  fetch(ref: string, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/** The channel can send a text that comes back to itself. */
interface SelfTest {
  /** The name of each hop once it is done; `nonce` is letters and digits. @throws NanobotError */
  run(nonce: string, signal: AbortSignal): AsyncIterable<string>;
}

/** Whether a message is answered under the limits of its account. */
export type Admission =
  | { readonly kind: 'answer' }
  /** `until`: when to ask again, epoch milliseconds. */
  | { readonly kind: 'wait'; readonly until: number; readonly reason: string }
  /** `notice`: the text for the person. */
  | { readonly kind: 'refuse'; readonly reason: string; readonly notice?: string };

export interface Channel {
  readonly name: ChannelName;
  readonly account: AccountId;
  readonly limits: ChannelLimits;
  readonly onUnknown: UnknownPolicy;
  /** Absent: sending can be tried at any time. */
  readonly readiness?: Readiness;
  /** How long an answer is worth delivering, milliseconds. */
  readonly lifetimeMs: number;
  /** Calls `SendContext.requestBegins` before each request that must not be repeated unmarked. */
  readonly announcesRequests?: true;
  /** Each of several processes serves its own people; only sending has one leader. */
  readonly isEverywhere?: true;
  /** A late text (`SendContext.isLate`) quotes the message it answers. */
  readonly quotesWhenLate?: true;
  /** Rapid messages are one question; false if each line is separate (terminal). */
  readonly coalesces: boolean;
  /**
   * Receives until `host.closing`, and continues until aborted if sending needs it; rejects with
   * ChannelError when it cannot continue. `send` and the powers work only until it is aborted.
   */
  run(host: ChannelHost, signal: AbortSignal): Promise<void>;
  /** Sends or, with `context.draft`, turns the draft into the final text. @throws DeliveryError */
  send(message: OutboundMessage, context: SendContext): Promise<Receipt>;
  reconcile?(
    message: OutboundMessage,
    signal: AbortSignal,
  ): Promise<Receipt | 'absent' | undefined>;
  readonly editing?: Editing;
  readonly typing?: Typing;
  readonly liveView?: LiveView;
  readonly login?: Login;
  /** Absent: the channel carries no files. */
  readonly attachments?: Attachments;
  /** Texts can have buttons; absent: the gateway numbers the labels. */
  readonly choices?: 'buttons';
  readonly reactions?: Reactions;
  readonly retracting?: Retracting;
  /** Absent: a test goes to an owner, and is deleted by `retracting`. */
  readonly selfTest?: SelfTest;
  /**
   * Removes the buttons of a sent text, which says `now` from then on; a repeat changes the text
   * again. Returns whether the text is in the chat and could be changed. @throws DeliveryError
   */
  closeChoices?(chat: ChatRef, part: NativeId, signal: AbortSignal, now?: string): Promise<boolean>;
  /**
   * Moves a message out of the inbox, if the platform has one; a message that is no longer there is
   * no failure. @throws ArchiveError
   */
  archive?(id: MessageId, signal: AbortSignal): Promise<void>;
  readonly inbox?: Inbox;
  /** Asked before the model call; `hasBegun`: an earlier try of the turn may have called one. */
  admit?(message: InboundMessage, hasBegun: boolean): Promise<Admission>;
  /** What a limit holds back and why, for status displays. */
  waiting?(): string | undefined;
}

/** A mailbox of the owner that the agent may read on request; nothing in it changes. */
export interface Inbox {
  /** Newest first. @throws InboxError */
  find(question: InboxQuestion, signal: AbortSignal): Promise<readonly InboxMail[]>;
  /** @throws InboxError */
  read(id: string, signal: AbortSignal): Promise<InboxText>;
}

/** `message` is fit for the model and for people. */
export class InboxError extends NanobotError {
  override readonly name = 'InboxError';
  constructor(message: string, cause?: unknown) {
    super('inbox', message, { cause });
  }
}

export type InboxQuestion = {
  /** Each must occur in the mail; empty: the newest mails. */
  readonly words: readonly string[];
  readonly isUnreadOnly: boolean;
  readonly count: number;
};

export type InboxMail = {
  /** Valid for `read` of the same mailbox. */
  readonly id: string;
  readonly from: string;
  readonly subject: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly isUnread: boolean;
};

export type InboxText = InboxMail & {
  /** Visible text, including quotes. */
  readonly text: string;
  readonly attachments: readonly string[];
};

// CONTRACT of a channel: a small required part plus optional powers, so that "can edit" and "has an
// edit method" cannot disagree. Shared code never asks for a channel's name; what differs is
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
import type { Clock } from '../lib/time/clock.ts';

export type ChannelLimits = {
  /** Longest text of one platform message, UTF-16 units. */
  readonly textUnits: number;
};

export type ChannelStatus =
  | { readonly kind: 'starting' }
  /** `activeAt`: epoch milliseconds of the last completed poll, IDLE or ping. */
  | { readonly kind: 'running'; readonly activeAt: number; readonly account?: string }
  | { readonly kind: 'degraded'; readonly reason: string; readonly retryAt?: number }
  /** Stays down until a person acts; `remedy` says how. */
  | { readonly kind: 'stopped'; readonly reason: string; readonly remedy: string };

/** `press`: the id of the message that was the press. Must not block. */
export type ShowOutcome = (press: MessageId, markdown: string) => void;

/** What a channel may use of the gateway. Each account has its own: rows, cursor, status. */
export interface ChannelHost {
  /**
   * Hands over messages and the cursor behind them; `record` entries are those the channel itself
   * refused, with the gate that stopped them. Resolves once all are durable or refused; only then
   * may the channel acknowledge upstream.
   * @throws BusFullError: nothing was stored, try again later without acknowledging.
   */
  receive(
    batch: readonly InboundEntry[],
    options?: {
      readonly cursor?: ChannelCursor;
      /** What came of a press, in Markdown, to be shown at what was pressed; it is said in the chat too. */
      readonly pressed?: ShowOutcome;
    },
  ): Promise<void>;
  cursor(): Promise<string | undefined>;
  /**
   * Whether this account is the one that answers what came to several accounts of the channel: the
   * first in which the sender is let in. `key` names every copy of it. Durable.
   */
  answers(key: string, message: InboundMessage): Promise<boolean>;
  /** Whether the gate refuses the message now because nobody let its sender in. */
  isUnknownSender(message: InboundMessage): Promise<boolean>;
  /** Whether the gate lets its sender in now, as more than a guest. */
  isTrusted(message: InboundMessage): Promise<boolean>;
  report(status: ChannelStatus): void;
  /** Tells the owner of trouble with this account, on another one. */
  alert(text: string): void;
  /** Tells the owner what is no trouble: on this account where they are reached there, else elsewhere. */
  tell(text: string): void;
  /**
   * Aborts at a graceful stop: nothing more is to be taken in, while answers under way may still be
   * sent. A channel that sends without `run` returns from it then.
   */
  readonly closing: AbortSignal;
  /**
   * A message this channel had sent came back undeliverable; kept for `trace`. Of several reports
   * the first counts.
   */
  bounced(id: MessageId, reason: string): Promise<'marked' | 'known' | 'not sent'>;
  readonly media: MediaStore;
  readonly state: KeyValueStore;
  readonly clock: Clock;
  readonly log: Logger;
}

export type DraftOptions = {
  readonly replyTo?: MessageId;
  /** Where the platform can tell, a draft placed again under its name is the one that stands there. */
  readonly name?: string;
  readonly signal: AbortSignal;
};

/** The platform lets us replace a text we sent: answers stream as a draft. */
export interface Editing {
  /** Shortest time between two edits of one chat, milliseconds. */
  readonly minIntervalMs: number;
  /**
   * A draft placed again under its name soon after, also by another process, is the one that stands
   * there: one whose placing was cut off is found so.
   */
  readonly isFoundAgain?: true;
  /** Shows the first draft. @throws DeliveryError */
  place(chat: ChatRef, markdown: string, options: DraftOptions): Promise<NativeId>;
  /** Replaces the draft; a text too long for one message shows its beginning. @throws DeliveryError */
  edit(chat: ChatRef, draft: NativeId, markdown: string, signal: AbortSignal): Promise<void>;
  /**
   * Shows the end of a text that is too long for the draft behind it; to be called after `edit`. Returns
   * the draft that is both together from now on. @throws DeliveryError
   */
  editEnd?(
    chat: ChatRef,
    draft: NativeId,
    markdown: string,
    signal: AbortSignal,
  ): Promise<NativeId>;
  /** Takes a draft away that will get no final text. @throws DeliveryError */
  remove(chat: ChatRef, draft: NativeId, signal: AbortSignal): Promise<void>;
}

export interface Typing {
  /** How long the platform shows one notice, milliseconds. */
  readonly intervalMs: number;
  show(chat: ChatRef, signal: AbortSignal): Promise<void>;
}

/** We can set a sign on what people write. */
export interface Reactions {
  /** Set while a message is worked on; undefined: none. */
  readonly acknowledgement?: string;
  /** Sets the sign on a message, or takes ours away. @throws DeliveryError */
  react(to: MessageId, emoji: string | undefined, signal: AbortSignal): Promise<void>;
}

/** What we sent can be taken out of the chat again. */
export interface Retracting {
  /**
   * Takes these messages of ours away; one that is gone already is no failure.
   * @throws DeliveryError where the platform keeps one of them, e.g. because it is too old.
   */
  retract(chat: ChatRef, parts: readonly NativeId[], signal: AbortSignal): Promise<void>;
}

/** The door shows whole pictures of a turn itself (web page, terminal). Must not block. */
export interface LiveView {
  show(update: LiveUpdate): void;
}

/** What a person who connects an account is shown, in order; the last is `done` or `failed`. */
export type LoginStep =
  | { readonly kind: 'progress'; readonly text: string }
  /** Replaces the code shown before it. `expiresAt`: epoch milliseconds. */
  | { readonly kind: 'show_qr'; readonly qr: string; readonly expiresAt: number }
  /** To be typed on the phone that owns `phoneNumber`. */
  | { readonly kind: 'show_code'; readonly code: string; readonly phoneNumber: string }
  | { readonly kind: 'done'; readonly account: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly remedy: string };

export type LoginOptions = {
  /** International number, digits only: a code to type is offered beside the QR. */
  readonly phoneNumber?: string;
};

/** An account is connected by a person's phone rather than by a credential in the configuration. */
export interface Login {
  /**
   * Connects an account; an account that was stopped but is still connected is taken up again. A
   * second call ends the first. What was half made when the signal aborts is cleaned up.
   */
  begin(options: LoginOptions, signal: AbortSignal): AsyncIterable<LoginStep>;
}

/** A readiness that is switched by its owner; not ready at first. */
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
  /** Another try would come to the same. */
  readonly isFinal: boolean;
  constructor(
    code: string,
    reason: string,
    options: { readonly isFinal: boolean; readonly cause?: unknown },
  ) {
    super(code, `an attachment could not be read, ${reason}`, { cause: options.cause });
    this.reason = reason;
    this.isFinal = options.isFinal;
  }
}

/** A message could not be taken out of the inbox; `reason` is for the person who wanted it. */
export class ArchiveError extends NanobotError {
  override readonly name = 'ArchiveError';
  readonly reason: string;
  constructor(code: string, reason: string, cause?: unknown) {
    super(code, `not archived: ${reason}`, { cause });
    this.reason = reason;
  }
}

/** The door carries files: `OutboundMessage.attachments` are sent, and what people send is fetched. */
export interface Attachments {
  /** Largest file it sends. */
  readonly maxUploadBytes: number;
  /** All files of a message go out in one piece, and are no larger than that together. */
  readonly isInOnePiece?: true;
  /** Longest caption, UTF-16 units; a longer one goes out as a text of its own. */
  readonly maxCaptionUnits: number;
  /** The content behind a reference this channel wrote. @throws AttachmentError */
  fetch(ref: string, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/** A text of ours can be sent so that it comes back by itself. */
export interface SelfTest {
  /** The name of each hop once it is done; `nonce` is letters and digits. @throws NanobotError */
  run(nonce: string, signal: AbortSignal): AsyncIterable<string>;
}

/** Whether a message is answered, as the limits of its account have it. */
export type Admission =
  | { readonly kind: 'answer' }
  /** `until`: when it is asked again, epoch milliseconds. */
  | { readonly kind: 'wait'; readonly until: number; readonly reason: string }
  /** `notice`: what the person is told. */
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
  /** It calls `SendContext.requestBegins` before each request that may not be repeated unseen. */
  readonly announcesRequests?: true;
  /** A late text (`SendContext.isLate`) shows by a reply what it answers. */
  readonly quotesWhenLate?: true;
  /** Rapid messages are one question here; false where each line stands alone (terminal). */
  readonly coalesces: boolean;
  /**
   * Receives until `host.closing`, and goes on until aborted where sending needs it; rejects with
   * ChannelError when it cannot go on. `send` and the powers work only until it is aborted.
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
  /** Absent: the door carries no files. */
  readonly attachments?: Attachments;
  /** Texts can have something to press below them; absent: the gateway numbers the labels. */
  readonly choices?: 'buttons';
  readonly reactions?: Reactions;
  readonly retracting?: Retracting;
  /** Absent: a test goes to an owner, and is taken away again by `retracting`. */
  readonly selfTest?: SelfTest;
  /**
   * Takes the buttons away from a text we sent, which says `now` from then on; again, it says something
   * else. Whether the text stands in the chat and could be changed. @throws DeliveryError
   */
  closeChoices?(chat: ChatRef, part: NativeId, signal: AbortSignal, now?: string): Promise<boolean>;
  /**
   * Takes a message out of the inbox, where the platform has such a thing; one that is not there any
   * more is no failure. @throws ArchiveError
   */
  archive?(id: MessageId, signal: AbortSignal): Promise<void>;
  readonly inbox?: Inbox;
  /** Asked before a model is; `hasBegun`: an earlier try of the turn may have asked one. */
  admit?(message: InboundMessage, hasBegun: boolean): Promise<Admission>;
  /** What a limit holds back and why, for status displays. */
  waiting?(): string | undefined;
}

// CONTRACT of a mailbox that can be looked into.

/** A mailbox of the owner's that the agent may look into at their word; nothing in it changes. */
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

// What the agent may look up in a mailbox of its owner's: the newest mails, or those that hold words.

export type InboxQuestion = {
  /** Each stands somewhere in the mail; none: whatever is newest. */
  readonly words: readonly string[];
  readonly isUnreadOnly: boolean;
  readonly count: number;
};

export type InboxMail = {
  /** Good for `read` of the same mailbox. */
  readonly id: string;
  readonly from: string;
  readonly subject: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly isUnread: boolean;
};

export type InboxText = InboxMail & {
  /** Visible text with what it quotes. */
  readonly text: string;
  readonly attachments: readonly string[];
};

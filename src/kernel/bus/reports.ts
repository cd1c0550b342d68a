// What the bus tells about messages and texts that it holds: a part of its contract, see bus.ts.

import type { MessageId, NativeId, SessionKey, TurnId, UserId } from '../message/ids.ts';
import type { ChatRef } from '../message/message.ts';

/** What became of one of our texts. */
export type SentText = {
  readonly id: MessageId;
  readonly chat: ChatRef;
  readonly markdown: string;
  /** The platform's ids of what stands in the chat, in order. */
  readonly parts: readonly NativeId[];
};

export type TakenBack = {
  readonly sent: readonly SentText[];
  /** One of them is being sent at the moment: it may yet arrive. */
  readonly isUnderWay: boolean;
};

export type CancelResult = {
  readonly withdrawn: number;
  readonly running: boolean;
  /** Answers that had not gone out, or not whole, and are not sent any further. */
  readonly unsent: number;
};

export type DeadLetter = {
  readonly id: MessageId;
  readonly direction: 'inbound' | 'outbound';
  readonly session: SessionKey;
  /** `unknown`: an outbound message of which nobody knows whether it arrived. */
  readonly state: 'dead' | 'unknown';
  readonly reason: string;
  readonly attempts: number;
  /** First 80 characters of the text. */
  readonly excerpt: string;
  readonly at: number;
};

/** The newest message of a person in a session that is no command, besides one. */
export type LastMessage = {
  readonly session: SessionKey;
  readonly besides: MessageId;
  /** Where several people write: whose. */
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
  /** Epoch milliseconds of the oldest message that waits, undefined when none does. */
  readonly oldestPendingAt: number | undefined;
};

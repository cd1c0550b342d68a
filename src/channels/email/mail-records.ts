// What is kept of each mail: the rows of the register (mail-register.ts), which writes and expires them.

import type { MessageId } from '../../kernel/message/ids.ts';
import type { Verification } from '../../kernel/message/message.ts';
import type { MailPlace } from './mail-files.ts';
import type { MailQuote } from './rules/quoting.ts';
import type { ParentMail } from './rules/threading.ts';

export type AnsweredMail = ParentMail & { readonly place?: MailPlace };

export type ThreadRecord = {
  readonly sender: string;
  readonly level: Verification;
  /** Epoch milliseconds of the newest mail of the person, by our clock. */
  readonly lastHumanAt: number;
  /** The newest mail, answered when an answer names none. */
  readonly parent: ParentMail;
};

/** A mail we know by its Message-ID. */
export type KnownMail = {
  readonly sender: string;
  readonly thread: string;
  readonly level: Verification;
  /** Our name of the inbound mail; undefined for one of our own. */
  readonly inbound?: MessageId;
  /** The answer one of our own carries. */
  readonly outbound?: MessageId;
  /** Further addresses it was sent to. */
  readonly copies?: readonly string[];
};

/** An answer on its way: everything that makes a second try byte-identical. */
export type OutgoingRecord = {
  readonly messageId: string;
  readonly dateMs: number;
  readonly subject: string;
  readonly inReplyTo?: string;
  readonly references: readonly string[];
  /** Who gets a copy. */
  readonly copies?: readonly string[];
  /** Epoch milliseconds of the latest try. */
  readonly triedAt: number;
  readonly isSent: boolean;
};

/** A mail that waits for a limit: one to be answered, or one of our own. */
export type HeldMail = {
  readonly id: MessageId;
  readonly recipient: string;
  readonly reason: string;
  /** Epoch milliseconds; the order in which they are released. */
  readonly since: number;
};

/** A copy for the Sent folder that is still to be stored. */
export type PendingCopy = {
  readonly messageId: string;
  readonly dateMs: number;
  readonly rawBase64: string;
  /** Tries so far; one of them may have stored it. */
  readonly tries: number;
};

export type InboundRecord = {
  readonly id: MessageId;
  readonly fingerprint: string;
  readonly thread: string;
  readonly sender: string;
  readonly level: Verification;
  readonly parent: AnsweredMail;
  readonly receivedAt: number;
  /** The text with its quotes, where they were cut; kept 30 days for whoever looks into the state. */
  readonly wholeText: string | undefined;
  /** How an answer quotes it, where it does. */
  readonly quote: MailQuote | undefined;
};

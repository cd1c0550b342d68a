// A received mail and what the conversation gets from it: its text, its parent, and the message
// that carries it.

import { hash } from 'node:crypto';
import type { AccountRef } from '../../kernel/message/ids.ts';
import { chatId, type MessageId, userId } from '../../kernel/message/ids.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { headOf, oneLine, visibleText } from '../../lib/text/cut.ts';
import type { MailReading, MailSummary, ParsedMail } from './mail-reader.ts';
import {
  headerValue,
  type MailHeaders,
  messageIdsIn,
  type SortedParts,
  sortParts,
} from './rules/address.ts';
import type { SenderVerdict } from './rules/sender.ts';
import { composeMailText, type MailForModel } from './rules/text.ts';
import {
  baseSubject,
  type MailQuote,
  otherRecipients,
  type ParentMail,
  quoteOf,
} from './rules/threading.ts';

const MAX_NAME_CHARS = 100;

export type MailArrival = {
  readonly uidValidity: string;
  readonly summary: MailSummary;
  readonly headers: MailHeaders;
  readonly reading: MailReading;
  /** Epoch milliseconds, local clock. */
  readonly receivedAt: number;
  /** Number of earlier tries to read it. */
  readonly tries: number;
  /** It is not read again, so the decision whether its sender is proven is final. */
  readonly isLast: boolean;
};

/** Identifies a mail by Message-ID, date and size, so that it is recognised when UIDs change. */
export function fingerprintOf(summary: MailSummary): string {
  return hash('sha256', `${summary.idFields}\n${summary.bytes}`).slice(0, 40);
}

/**
 * The key by which the loop detector considers two mails of a sender the same: their text and
 * files. A proven sender may answer "yes" to two different mails.
 */
export function wordsOf(arrival: MailArrival, mail: ParsedMail, sender: SenderVerdict): string {
  const { headers } = arrival;
  const answered = sender.level === 'unverified' ? '' : (headerValue(headers, 'in-reply-to') ?? '');
  const files = mail.attachments.map(({ name, type, bytes }) => `${name} ${type} ${bytes}`);
  const subject = baseSubject(headerValue(headers, 'subject') ?? '');
  return [subject, answered, mail.text, ...mail.calendars, ...files].join('\n');
}

export function textOf(
  arrival: MailArrival,
  sender: SenderVerdict,
  isFirst: boolean,
  recipients: string,
): MailForModel & { readonly whole: string | undefined; readonly words: string } {
  const { result } = arrival.reading;
  if (result.kind === 'unreadable') {
    const size = arrival.summary.bytes.toLocaleString('en-US');
    const text = `[a mail of ${size} bytes was not read: ${result.gate}]`;
    return { text, whole: undefined, words: text };
  }
  const { mail } = result;
  const { stripped } = mail;
  const composed = composeMailText({
    subject: mail.subject,
    stripped,
    attachments: partsOf(arrival).leftOut,
    calendars: mail.calendars,
    isFirst,
    partsDiffer: mail.partsDiffer,
    recipients,
  });
  const isCut = stripped.text !== mail.text.trim();
  return {
    ...composed,
    whole: isCut ? mail.text : undefined,
    words: wordsOf(arrival, mail, sender),
  };
}

/** Its attachments: those that are carried and those that are only named. */
export function partsOf({ reading: { result } }: MailArrival): SortedParts {
  return sortParts(result.kind === 'parsed' ? result.mail.attachments : []);
}

/** What an answer to this mail refers to. */
export function parentOf(
  arrival: MailArrival,
  sender: string,
  ours: readonly string[],
): ParentMail {
  const { headers, reading } = arrival;
  const ownId = messageIdsIn(headerValue(headers, 'message-id'))[0];
  const references = headerValue(headers, 'references');
  const inReplyTo = headerValue(headers, 'in-reply-to');
  const { result } = reading;
  const others = otherRecipients(headers, sender, ours);
  const subject =
    result.kind === 'parsed' ? result.mail.subject : (headerValue(headers, 'subject') ?? '');
  const named = others.length === 0 ? undefined : others;
  return { subject, messageId: ownId, references, inReplyTo, others: named };
}

/** Nothing is quoted to an address that may be forged: it would carry arbitrary text there. */
export function quoteFor(
  { reading: { result } }: MailArrival,
  message: InboundMessage,
  sender: SenderVerdict,
): MailQuote | undefined {
  if (result.kind === 'unreadable' || sender.level === 'unverified') return undefined;
  const { sentAt, chat } = message;
  const name = message.sender.kind === 'person' ? message.sender.name : undefined;
  return quoteOf({ address: chat.chat, name, sentAt, text: result.mail.text });
}

const displayName = (text: string) => headOf(oneLine(visibleText(text)), MAX_NAME_CHARS);

/** The message without its text: all that is kept of a refused mail. */
export function blankMessage(
  id: MessageId,
  address: string,
  arrival: MailArrival,
  at: AccountRef,
  sender?: SenderVerdict,
): InboundMessage {
  const { result } = arrival.reading;
  const name = result.kind === 'parsed' ? displayName(result.mail.fromName ?? '') : '';
  const { arrivedAtMs } = arrival.summary;
  return {
    id,
    chat: { ...at, chat: chatId(address) },
    sender: {
      kind: 'person',
      id: userId(address),
      name: name === '' ? undefined : name,
      verified: sender?.level ?? 'unverified',
    },
    addressing: 'direct',
    text: '',
    sentAt: Number.isNaN(arrivedAtMs) ? arrival.receivedAt : arrivedAtMs,
    receivedAt: arrival.receivedAt,
  };
}

// When a turn may begin: rapid messages of one chat are one question. The quiet time counts from
// the last message; a part that fills the channel's limit waits longer for its continuation.

import { heardBlock } from '../../intake/rules/group-talk.ts';
import { OWN_SPEECH_KINDS, textWithAttachments } from '../../message/attachment.ts';
import type { InboundMessage } from '../../message/message.ts';
import { authorOf, changeNote } from '../../message/message.ts';
import { wrapUntrusted } from '../../message/untrusted.ts';
import { partSpeech } from './live-reply.ts';

export type CoalescePolicy = {
  readonly quietMs: number;
  readonly maxWaitMs: number;
  readonly maxMessages: number;
  readonly continuationMs: number;
};

export type Arrival = {
  /** Epoch milliseconds, local clock. */
  readonly receivedAt: number;
  /** UTF-16 units. */
  readonly length: number;
  /** It announces that more may come. */
  readonly mayContinue?: boolean;
  /** People often send several of this kind, or a text with it: a file, or something forwarded. */
  readonly isPart?: boolean;
};

/** Messages that are closer together belong to one thought. */
const TOGETHER_MS = 3000;

/** Clients split a long paste a little below the limit. */
const FULL_PART_SHARE = 0.97;

/** Milliseconds to wait for followers before the turn begins; 0 = begin now. */
export function coalesceWaitMs(
  arrivals: readonly [Arrival, ...Arrival[]],
  policy: CoalescePolicy,
  limitUnits: number,
  now: number,
): number {
  if (arrivals.length >= policy.maxMessages) return 0;
  const first = arrivals[0];
  const last = arrivals.at(-1) ?? first;
  const quietMs = isFull(last, limitUnits)
    ? Math.max(policy.quietMs, policy.continuationMs)
    : policy.quietMs;
  const dueAt = Math.min(last.receivedAt + quietMs, first.receivedAt + policy.maxWaitMs);
  return Math.max(0, dueAt - now);
}

const isFull = ({ mayContinue, length }: Arrival, limitUnits: number): boolean =>
  mayContinue === true || length >= limitUnits * FULL_PART_SHARE;

/**
 * Whether a question is likely complete: a single message that is not a part of several, some time
 * after the previous one.
 *
 * @param before epoch milliseconds of the previous message; undefined: none is known
 */
export function isLikelyComplete(
  arrivals: readonly [Arrival, ...Arrival[]],
  before: number | undefined,
  limitUnits: number,
): boolean {
  const [first, ...followers] = arrivals;
  if (followers.length > 0 || first.isPart === true || isFull(first, limitUnits)) return false;
  return before === undefined || first.receivedAt - before > TOGETHER_MS;
}

// The text of a batch of messages: the first unchanged, each later one with its delay, so that the
// model sees the pace at which the person wrote. Untrusted content in them is wrapped.

type Said = Pick<InboundMessage, 'text' | 'quoted'> &
  Partial<Pick<InboundMessage, 'sender' | 'group' | 'heard' | 'attachments' | 'amends' | 'note'>>;
type Worded = Said & Pick<InboundMessage, 'receivedAt' | 'sentAt'>;

/** An unpredictable text, new each time. */
type NewBoundary = () => string;

/** When a message was sent, if that must be stated. */
type SentNoteOf = (message: Pick<InboundMessage, 'receivedAt' | 'sentAt'>) => string | undefined;

/**
 * One text per message: the first unchanged, later ones as `[+350ms] text` (since the first); one
 * that waited long states when it was sent.
 */
export function joinTexts(
  messages: readonly Worded[],
  newBoundary: NewBoundary,
  sentNoteOf: SentNoteOf = () => undefined,
): readonly string[] {
  const startedAt = messages[0]?.receivedAt ?? 0;
  return messages.map((message, index) => {
    const text = wordsOf(message, newBoundary);
    const note = sentNoteOf(message);
    if (note !== undefined) return `${note} ${text}`;
    return index === 0 ? text : `[+${Math.max(0, message.receivedAt - startedAt)}ms] ${text}`;
  });
}

/**
 * Whether the model sees more of it than the sender's own text. `isTrusted`: their attachments are
 * their own, unless forwarded; `isQuoteOwn`: their quote is from the private chat and was
 * untainted.
 */
export function holdsUntrustedText(
  message: Said,
  { isTrusted = false, isQuoteOwn = false } = {},
): boolean {
  const { text, sender, quoted, heard = [], attachments = [] } = message;
  const isUnknown = sender?.kind === 'person' && sender.verified === 'unverified';
  const isPassedOn = !isTrusted && attachments.some(({ kind }) => !OWN_SPEECH_KINDS.includes(kind));
  return (
    (quoted !== undefined && !isQuoteOwn) ||
    heard.length > 0 ||
    isUnknown ||
    isPassedOn ||
    text.startsWith(FORWARDED)
  );
}

/** A file that is not the sender's own speech, or something forwarded. */
export function isPartOfSeveral({ text, attachments = [] }: Said): boolean {
  return (
    text.startsWith(FORWARDED) || attachments.some(({ kind }) => !OWN_SPEECH_KINDS.includes(kind))
  );
}

/** The person's text, below what they quoted; in a group with their name and the talk before. */
export function wordsOf(message: Said, newBoundary: NewBoundary): string {
  const { note } = message;
  const words = withAuthor(message, newBoundary);
  return note === undefined ? words : `${note}\n\n${words}`;
}

function withAuthor(message: Said, newBoundary: NewBoundary): string {
  const { sender, group, heard = [] } = message;
  const words = withChangeNote(message, newBoundary);
  if (group === undefined || sender === undefined) return words;
  const before = heard.length === 0 ? '' : `${heardBlock(heard)}\n\n`;
  const separator = message.quoted === undefined ? ' ' : '\n';
  return `${before}${authorOf(sender)}:${separator}${words}`;
}

/** A change that comes while the turn runs states what it changes. */
function withChangeNote(message: Said, newBoundary: NewBoundary): string {
  const words = withQuote(message, newBoundary);
  return message.amends === undefined ? words : `${changeNote(message.amends)}\n${words}`.trim();
}

function withQuote(message: Said, newBoundary: NewBoundary): string {
  const { quoted } = message;
  const text = ownOrForeign(message, newBoundary);
  const speech = partSpeech(message.attachments, isOwn(message));
  const words = textWithAttachments({ text, attachments: speech.own });
  const heard = speech.others.map(({ title, spoken }) =>
    wrapUntrusted(`said in the ${title}`, [{ text: spoken }], newBoundary()),
  );
  const said = [words, ...heard].join('\n\n');
  if (quoted === undefined) return said;
  return `${wrapUntrusted('quoted by the person', [quoted], newBoundary())}\n\n${said}`;
}

/** A message that somebody else wrote as a whole: forwarded, or of an unknown author. */
function ownOrForeign(message: Said, newBoundary: NewBoundary): string {
  const { text } = message;
  if (text.startsWith(FORWARDED)) {
    const [note = '', author] = FORWARD_NOTE.exec(text) ?? [];
    const part = { text: text.slice(note.length), ...(author === undefined ? {} : { author }) };
    return wrapUntrusted('forwarded by the person', [part], newBoundary());
  }
  if (text === '' || isOwn(message)) return text;
  return wrapUntrusted('sent by an unverified sender', [{ text }], newBoundary());
}

/** From a known person, and not forwarded by them. */
function isOwn({ text, sender }: Said): boolean {
  const isKnown = sender?.kind !== 'person' || sender.verified !== 'unverified';
  return isKnown && !text.startsWith(FORWARDED);
}

/** How the channels start forwarded messages. */
const FORWARDED = '[forwarded';
const FORWARD_NOTE = /^\[forwarded(?: from ([^\n]*))?\]\n/;

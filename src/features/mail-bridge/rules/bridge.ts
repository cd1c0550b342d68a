// Mails that are left to the owner instead of being answered: which they are, and what the owner is
// shown of them. A mail's words, and a summary of them, stand in code spans: nothing in them can be
// tapped, loaded or taken for ours.

import { visibleText } from '../../../channels/email/rules/text.ts';
import type { SettledVerdict } from '../../../kernel/access/admission.ts';
import { accountName } from '../../../kernel/message/account.ts';
import { attachmentTitle } from '../../../kernel/message/attachment.ts';
import { DEFAULT_ACCOUNT } from '../../../kernel/message/ids.ts';
import type { InboundMessage, Verification } from '../../../kernel/message/message.ts';
import { shortName, verbatim } from '../../../kernel/message/untrusted.ts';
import { headOf, shortened } from '../../../lib/text/cut.ts';
import { createMinuteText } from '../../../lib/time/zone-time.ts';
import { type MailSummary, SHORT_MAIL_CHARS } from './summary.ts';

/** `unlisted`: of people who are not let in; `all`: of everybody but the owner. */
export const BRIDGE_MODES = ['off', 'unlisted', 'all'] as const;
export type BridgeMode = (typeof BRIDGE_MODES)[number];

const MAX_LINES = 6;
/** Of a mail that is short anyway. */
const MAX_SHORT_LINES = 20;
const MAX_EXCERPT_CHARS = 600;
const MAX_LINE_CHARS = 200;
const MAX_SUBJECT_CHARS = 150;
const MAX_NAMED_FILES = 5;
/** Longest part of a dictated answer that is shown again. */
const MAX_SHOWN_DRAFT_CHARS = 3000;

/** Whether a message is for the owner rather than for the agent. */
export function isBridged(mode: BridgeMode, verdict: SettledVerdict): boolean {
  if (mode === 'off') return false;
  if (verdict.kind === 'admit') {
    return mode === 'all' && verdict.role !== undefined && verdict.role !== 'owner';
  }
  return verdict.kind === 'knock' || (verdict.kind === 'refuse' && verdict.isBlocked !== true);
}

/** What the owner is shown of a mail. */
export type MailNote = {
  /** Of several, the one it came to, and the answer goes out from; absent: the first. */
  readonly mailbox?: string;
  readonly address: string;
  readonly name: string;
  readonly verified: Verification;
  readonly subject: string;
  /** Its first lines. */
  readonly lines: readonly string[];
  readonly isCut: boolean;
  readonly files: readonly string[];
};

export function mailNoteOf(message: InboundMessage): MailNote {
  const { sender, chat, subject = '', attachments = [] } = message;
  const isPerson = sender.kind === 'person';
  return {
    ...(chat.account === DEFAULT_ACCOUNT ? {} : { mailbox: accountName(chat) }),
    address: chat.chat,
    name: isPerson ? shortName(sender.name) : '',
    verified: isPerson ? sender.verified : 'unverified',
    subject: oneLine(subject, MAX_SUBJECT_CHARS),
    ...excerptOf(message.text, subject),
    files: attachments.map((one) => attachmentTitle(one)),
  };
}

/** Without the line that names the subject once more. */
export function bodyOf(text: string, subject: string): string {
  const title = `Subject: ${oneLine(subject, subject.length)}`;
  return subject !== '' && text.startsWith(title) ? text.slice(title.length) : text;
}

function excerptOf(text: string, subject: string): Pick<MailNote, 'lines' | 'isCut'> {
  const body = bodyOf(text, subject);
  const lines: string[] = [];
  let left = MAX_EXCERPT_CHARS;
  const all = body.split('\n').filter((line) => line.trim() !== '');
  const isShort = body.trim().length < SHORT_MAIL_CHARS;
  for (const line of all.slice(0, isShort ? MAX_SHORT_LINES : MAX_LINES)) {
    const shown = oneLine(line, Math.min(left, MAX_LINE_CHARS));
    if (left <= 0) break;
    if (shown !== '') lines.push(shown);
    left -= shown.length;
  }
  const shownChars = MAX_EXCERPT_CHARS - left;
  return { lines, isCut: all.join('').trim().length > shownChars + lines.length };
}

function oneLine(text: string, maxChars: number): string {
  return headOf(visibleText(text).replace(/\s+/g, ' ').trim(), maxChars);
}

const PROOF: Readonly<Record<Verification, string>> = {
  verified: 'proven by its signature',
  asserted: 'checked by the mail server',
  unverified: '**not proven: anybody may have written this**',
};

const NO_SUMMARY = {
  budget: 'Not summarised: today’s budget is used up. Its first lines:',
  local_only:
    'Not summarised: its model is none of your own machines, and nothing may leave them. Its first lines:',
  failed: 'Not summarised: no model answered. Its first lines:',
} as const;

export function mailNoteText(note: MailNote, summary?: MailSummary): string {
  const { mailbox, address, name, verified, subject, files } = note;
  const to = mailbox === undefined ? '' : ` to ${mailbox}`;
  const named = name === '' ? verbatim(address) : `${verbatim(name)} (${verbatim(address)})`;
  const more = files.length > MAX_NAMED_FILES ? ` and ${files.length - MAX_NAMED_FILES} more` : '';
  return [
    `Mail${to} from ${named}, ${PROOF[verified]}`,
    subject === '' ? 'Without a subject' : `Subject: ${verbatim(subject)}`,
    ...contentLines(note, summary),
    ...(files.length === 0
      ? []
      : ['', `Files: ${files.slice(0, MAX_NAMED_FILES).map(verbatim).join(', ')}${more}`]),
  ].join('\n');
}

function contentLines({ lines, isCut }: MailNote, summary?: MailSummary): readonly string[] {
  if (summary?.kind === 'made') {
    return ['', 'In short, by a model that nobody checked:', `> ${verbatim(summary.text)}`];
  }
  if (lines.length === 0) return ['It has no text.'];
  const why = summary?.kind === 'missing' ? [NO_SUMMARY[summary.because]] : [];
  const quoted = lines.map((line) => `> ${verbatim(line)}`);
  return ['', ...why, ...quoted, ...(isCut ? ['> …'] : [])];
}

export const MAIL_CHOICES = [
  { label: 'Reply', action: 'reply' },
  { label: 'Archive', action: 'archive' },
  { label: 'Snooze 1 h', action: 'hour' },
  { label: 'Tomorrow 9:00', action: 'tomorrow' },
] as const;

export const DRAFT_CHOICES = [
  { label: 'Send', action: 'send' },
  { label: 'Edit', action: 'edit' },
  { label: 'Drop', action: 'drop' },
] as const;

/** The owner's own words, whole as far as a chat shows them, before they go out. */
export function mailDraftText(note: MailNote, text: string, hasFiles: boolean): string {
  const from = note.mailbox === undefined ? '' : ` from ${note.mailbox}`;
  const shown = shortened(text, MAX_SHOWN_DRAFT_CHARS, ' …');
  return [
    `This goes${from} to ${verbatim(note.address)}, in answer to ${subjectOf(note)}:`,
    '',
    ...shown.split('\n').map((line) => `> ${line}`.trimEnd()),
    ...(hasFiles ? ['', 'The file is not part of it: only text goes out this way.'] : []),
    ...(note.verified === 'unverified'
      ? ['', 'Nothing proves that this address wrote the mail.']
      : []),
  ].join('\n');
}

export function subjectOf({ subject }: MailNote): string {
  return subject === '' ? 'a mail without a subject' : verbatim(subject);
}

export function moreMailsText(count: number): string {
  const mails = count === 1 ? '1 more mail' : `${count} more mails`;
  return `${mails} came in than I show in an hour. You find them in the mailbox.`;
}

// Until when something is put off, in a person's time zone.

const DAY_MS = 86_400_000;
const MORNING = 9;

/** 9:00 of the next calendar day in the zone, epoch milliseconds; an hour the clock skips comes later. */
export function tomorrowMorning(nowMs: number, timeZone: string): number {
  const minuteText = createMinuteText();
  /** What the zone's clock shows, as if it were UTC. */
  const shown = (atMs: number) => Date.parse(`${minuteText(atMs, timeZone).replace(' ', 'T')}:00Z`);
  const today = Math.floor(shown(nowMs) / DAY_MS) * DAY_MS;
  const wanted = today + DAY_MS + MORNING * 3_600_000;
  // The offset may change in between, so it is taken again at the moment found first.
  const first = wanted - (shown(nowMs) - Math.floor(nowMs / 60_000) * 60_000);
  return first + (wanted - shown(first));
}

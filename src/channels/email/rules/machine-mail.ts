// Automatic mail (case table D1): what must never be answered, decided before any model call by one
// table whose first match is the recorded reason. Delivery reports (RFC 3464) say in the program's
// own text which mails failed permanently.

import { verbatim } from '../../../kernel/message/untrusted.ts';
import { t } from '../../../lib/texts.ts';
import {
  addressesIn,
  headerValue,
  headerValues,
  isOwnAddress,
  localPartOf,
  type MailHeaders,
  messageIdsIn,
  normalizeAddress,
  parseHeaderBlock,
  withoutComments,
} from './address.ts';

export type MailFacts = {
  readonly headers: MailHeaders;
  /** Normalized sender address. */
  readonly sender: string;
  /** Normalised addresses of this mailbox. */
  readonly own: readonly string[];
  /** The same of every mailbox of this home. */
  readonly ours: readonly string[];
  /** Lower-case content types of every part, the whole mail's first. */
  readonly contentTypes: readonly string[];
  /** Lower-case `method` of a calendar part. */
  readonly calendarMethod?: string | undefined;
  /** The program made the Message-ID. */
  readonly isOurs: boolean;
  /** The sender is verified or asserted. */
  readonly isAuthenticated: boolean;
  readonly standing: Standing;
};

/** `named`: on the allow list by address; `anybody`: as everybody is; `unknown`: neither. */
export type Standing = 'named' | 'anybody' | 'unknown';

export type MailVerdict =
  | { readonly kind: 'answer' }
  | { readonly kind: 'refuse'; readonly gate: string }
  /** Not answered, but told to the owner: a proven sender may expect an answer. */
  | { readonly kind: 'hold'; readonly gate: string };

/** The mark on every mail of this program. */
export const OWN_MARK_HEADER = 'X-Nanobot-Id';
/** RFC 5321 section 6.3 asks loop detection for a large number of hops. */
const MAX_RECEIVED_FIELDS = 50;

const MACHINE_FIELDS = [
  'x-autoreply',
  'x-autorespond',
  'x-auto-reply-from',
  'x-mail-autoreply',
  'x-auto-generated',
  'x-loop',
  'x-failed-recipients',
] as const;

/** Delivery and read receipts (`DR`, `RN`, `NRN`) are no answers. */
const SUPPRESSED = /\b(all|autoreply|oof)\b/i;
const REPORT_TYPES = /^(multipart\/report|message\/(delivery-status|disposition-notification))/;
const ENCRYPTED_TYPES = /^(multipart\/encrypted|application\/(x-)?pkcs7-mime)/;
const DAEMONS = /^(mailer-daemon|postmaster|double-bounce)$/;
const MACHINE_SENDERS =
  /^(no[-_.]?reply|do[-_.]?not[-_.]?reply|bounces?|owner-.*|.*-(request|owner)|listserv|majordomo|notifications?|auto-confirm|mailer)$/;
const AUTO_SUBJECT =
  /^\s*(automatic reply|auto(matic)?[- ]?response|autoreply|out of( the)? office|abwesenheit|automatische antwort|r[ée]ponse automatique|absence du bureau|respuesta autom[áa]tica|fuera de (la )?oficina|risposta automatica|automatisch antwoord|自動返信|自动回复|автоответ)/i;

type Rule = {
  readonly gate: string;
  /** The mail declares that no person wrote it. */
  readonly isMachine?: true;
  readonly applies: (facts: MailFacts) => boolean;
};

const has = (facts: MailFacts, name: string) => headerValue(facts.headers, name) !== undefined;

const keyword = (facts: MailFacts, name: string) =>
  withoutComments(headerValue(facts.headers, name) ?? '')
    .split(';')[0]
    ?.trim()
    .toLowerCase() ?? '';

const addressesOf = (facts: MailFacts, names: readonly string[]) =>
  names.flatMap((name) => headerValues(facts.headers, name)).flatMap(addressesIn);

const names = (facts: MailFacts, fields: readonly string[]) =>
  addressesOf(facts, fields).some((address) => isOwnAddress(address, facts.ours));

/** A proven sender who may expect an answer, on the allow list by address or as everybody. */
const isAwaited = ({ isAuthenticated, standing }: MailFacts) =>
  isAuthenticated && standing !== 'unknown';

/** No notice for these: they are as many as our answers. */
const OWN_GATE = t`our own mail`;

const DELIVERY_FIELDS = [
  'to',
  'cc',
  'delivered-to',
  'x-original-to',
  'envelope-to',
  'x-envelope-to',
  'x-forwarded-to',
] as const;

const RULES: readonly Rule[] = [
  {
    gate: OWN_GATE,
    applies: (facts) => facts.isOurs || names(facts, ['from']),
  },
  {
    gate: 'a mail of nanobot',
    isMachine: true,
    applies: (facts) => has(facts, OWN_MARK_HEADER.toLowerCase()),
  },
  {
    gate: 'answers would come to ourselves',
    applies: (facts) => names(facts, ['sender', 'reply-to']),
  },
  {
    gate: 'empty return path',
    isMachine: true,
    applies: (facts) =>
      headerValues(facts.headers, 'return-path').some((path) => /^<\s*>$/.test(path)),
  },
  {
    gate: 'mail system sender',
    isMachine: true,
    applies: (facts) =>
      DAEMONS.test(localPartOf(facts.sender)) ||
      addressesOf(facts, ['return-path']).some((path) => DAEMONS.test(localPartOf(path))),
  },
  {
    gate: 'auto-submitted',
    isMachine: true,
    applies: (facts) => has(facts, 'auto-submitted') && keyword(facts, 'auto-submitted') !== 'no',
  },
  {
    gate: 'delivery report',
    isMachine: true,
    applies: (facts) => facts.contentTypes.some((type) => REPORT_TYPES.test(type)),
  },
  {
    gate: 'mailing list',
    isMachine: true,
    applies: (facts) =>
      facts.headers.some((header) => header.name.startsWith('list-')) ||
      keyword(facts, 'precedence') === 'list',
  },
  {
    gate: 'auto-response suppressed',
    applies: (facts) =>
      SUPPRESSED.test(headerValue(facts.headers, 'x-auto-response-suppress') ?? ''),
  },
  {
    gate: 'machine header',
    applies: (facts) =>
      MACHINE_FIELDS.some((name) => has(facts, name)) ||
      // Some providers set it in mail of people as well.
      (has(facts, 'feedback-id') && !isAwaited(facts)),
  },
  {
    gate: 'machine sender',
    isMachine: true,
    applies: (facts) => isMachineAddress(facts.sender),
  },
  {
    gate: 'not addressed to us',
    applies: (facts) =>
      !addressesOf(facts, DELIVERY_FIELDS).some((address) => isOwnAddress(address, facts.own)),
  },
  {
    gate: 'too many hops',
    applies: (facts) => headerValues(facts.headers, 'received').length > MAX_RECEIVED_FIELDS,
  },
  {
    gate: 'calendar answer',
    isMachine: true,
    applies: (facts) => facts.calendarMethod === 'reply' || facts.calendarMethod === 'cancel',
  },
  {
    gate: 'encrypted',
    // An awaited sender gets an answer from the agent that it could not be read.
    applies: (facts) => isEncrypted(facts.contentTypes) && !isAwaited(facts),
  },
  {
    gate: 'read receipt',
    applies: (facts) => /^(read|gelesen|lu)\s*:/i.test(subjectOf(facts)) && !facts.isAuthenticated,
  },
  {
    gate: 'automatic subject',
    applies: (facts) => AUTO_SUBJECT.test(subjectOf(facts)) && !facts.isAuthenticated,
  },
  {
    // Not standardised, and some people's mail has it.
    gate: 'bulk precedence',
    applies: (facts) => /^(bulk|junk|auto_reply)$/.test(keyword(facts, 'precedence')),
  },
];

export function isEncrypted(contentTypes: readonly string[]): boolean {
  return contentTypes.some((type) => ENCRYPTED_TYPES.test(type));
}

/** The local part indicates that no person reads the mailbox. */
export function isMachineAddress(address: string): boolean {
  return MACHINE_SENDERS.test(localPartOf(address).replace(/\+.*$/, ''));
}

const subjectOf = (facts: MailFacts) => headerValue(facts.headers, 'subject') ?? '';

export function judgeMail(facts: MailFacts): MailVerdict {
  const rule = RULES.find((candidate) => candidate.applies(facts));
  if (rule === undefined) return { kind: 'answer' };
  const { gate, isMachine = false } = rule;
  const isHeld =
    facts.standing === 'named' ? facts.isAuthenticated : !isMachine && isAwaited(facts);
  return { kind: isHeld && gate !== OWN_GATE ? 'hold' : 'refuse', gate };
}

/** The notice about a held mail. */
export function heldNotice(address: string, subject: string, gate: string): string {
  const named = subject === '' ? '' : ` (${verbatim(subject)})`;
  const remedy = REMEDIES[gate] ?? t`It stays in the mailbox.`;
  return t`A mail from ${verbatim(address)}${named} was not answered. Reason: ${gate}. ${remedy}`;
}

const REMEDIES: Readonly<Record<string, string>> = {
  'not addressed to us': t`None of this mailbox’s addresses is in To or Cc. If the mail was sent to an alias, add the alias to \`aliases\` of the email channel.`,
  'answers would come to ourselves': t`Its Sender or Reply-To field names this mailbox. Ask the sender to remove that address there.`,
  'bulk precedence': t`Its Precedence field marks it as bulk mail. It stays in the mailbox.`,
  'auto-response suppressed': t`Its X-Auto-Response-Suppress field asks for no automatic answer. It stays in the mailbox.`,
};

// Delivery reports (RFC 3464) about mails of the agent: whether one failed permanently, which, and
// why, in the program's own text. Prose in the report is untrusted content and is not passed on.

export type BounceReport = {
  /** Message ids in the returned part of the mail; includes the failed one. */
  readonly originalIds: readonly string[];
  /** The address that failed, if the report names one. */
  readonly recipient?: string;
  /** E.g. `5.1.1 (no such address)`. */
  readonly reason: string;
};

/** Decoded parts of a report, by content type in lower case. */
export type ReportPart = { readonly type: string; readonly text: string };

const STATUS_TYPES = /^message\/(global-)?delivery-status$/;
const RETURNED_TYPES =
  /^(message\/(rfc822|global|global-headers|rfc822-headers)|text\/rfc822-headers)$/;
const MAX_STATUS_BLOCKS = 50;

/** RFC 3463: the meaning of the second and third number of a status, most specific first. */
const MEANINGS: readonly (readonly [RegExp, string])[] = [
  [/^\d\.1\.[136]$/, t`no such address`],
  [/^\d\.1\.2$/, t`no such mail domain`],
  [/^\d\.1\.10$/, t`that domain accepts no mail`],
  [/^\d\.1\./, t`the address was not accepted`],
  [/^\d\.2\.1$/, t`the mailbox is switched off`],
  [/^\d\.2\.2$/, t`the mailbox is full`],
  [/^\d\.2\.3$/, t`the mail is too large`],
  [/^\d\.2\./, t`the mailbox accepts no mail`],
  [/^\d\.3\./, t`a problem in the receiving mail system`],
  [/^\d\.4\.7$/, t`it could not be delivered in time`],
  [/^\d\.4\./, t`the receiving mail system cannot be reached`],
  [/^\d\.5\./, t`the mail systems could not communicate`],
  [/^\d\.6\./, t`the content was not accepted`],
  [/^\d\.7\./, t`refused by the receiving mail system’s rules`],
];

/** The permanent failure that these parts report; undefined for delays and successes. */
export function readBounce(parts: readonly ReportPart[]): BounceReport | undefined {
  const status = parts.find(({ type }) => STATUS_TYPES.test(type));
  if (status === undefined) return undefined;
  const failed = blocksOf(status.text).find(
    (block) => headerValue(block, 'action')?.trim().toLowerCase() === 'failed',
  );
  if (failed === undefined) return undefined;
  const returned = parts.filter(({ type }) => RETURNED_TYPES.test(type));
  const originalIds = returned.flatMap(({ text }) => returnedIds(text));
  const recipient = recipientOf(failed);
  return {
    originalIds: [...new Set(originalIds)],
    ...(recipient === undefined ? {} : { recipient }),
    reason: reasonOf(headerValue(failed, 'status') ?? ''),
  };
}

/** Fields about the report, then one block for each recipient (RFC 3464 section 2.1). */
function blocksOf(text: string): readonly MailHeaders[] {
  const blocks = text.replace(/\r\n?/g, '\n').split(/\n{2,}/, MAX_STATUS_BLOCKS);
  return blocks.map(parseHeaderBlock);
}

/** Only the header names the mail; its body may quote others. */
function returnedIds(text: string): readonly string[] {
  const [block = ''] = text.replace(/\r\n?/g, '\n').trimStart().split('\n\n', 1);
  return messageIdsIn(headerValue(parseHeaderBlock(block), 'message-id'));
}

/** The address used for sending, not the one it was forwarded to, if the report has both. */
function recipientOf(block: MailHeaders): string | undefined {
  const value = headerValue(block, 'original-recipient') ?? headerValue(block, 'final-recipient');
  const address =
    value
      ?.split(';', 2)[1]
      ?.trim()
      .replace(/^<(.*)>$/, '$1') ?? '';
  return normalizeAddress(address);
}

function reasonOf(field: string): string {
  const status = /^\s*([245]\.\d{1,3}\.\d{1,3})\b/.exec(field)?.[1];
  if (status === undefined) return t`no reason given`;
  const meaning = MEANINGS.find(([pattern]) => pattern.test(status))?.[1];
  return meaning === undefined ? status : `${status} (${meaning})`;
}

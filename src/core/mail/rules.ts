// The wall against machine mail (case table D1): what must never be answered, decided before any
// model call. One table; the first rule that applies is the recorded reason.

import { addressesIn, isOwnAddress, localPartOf } from './address.ts';
import { headerValue, headerValues, type MailHeaders, withoutComments } from './headers.ts';

export type MailFacts = {
  readonly headers: MailHeaders;
  /** Normalized sender address. */
  readonly sender: string;
  /** Normalized addresses of this mailbox. */
  readonly own: readonly string[];
  /** The same of every mailbox of ours. */
  readonly ours: readonly string[];
  /** Lower-case content types of every part, the whole mail's first. */
  readonly contentTypes: readonly string[];
  /** Lower-case `method` of a calendar part. */
  readonly calendarMethod?: string;
  /** The Message-ID is one we made. */
  readonly isOurs: boolean;
  /** The sender is verified or asserted. */
  readonly isAuthenticated: boolean;
  /** The sender is on the allow list. */
  readonly isListed: boolean;
};

export type MailVerdict =
  | { readonly kind: 'answer' }
  | { readonly kind: 'refuse'; readonly gate: string }
  /** Not answered, but the owner is told: a listed person's mail that looks like bulk. */
  | { readonly kind: 'hold'; readonly gate: string };

/** Our own mark on everything this program sends. */
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
  'feedback-id',
  'x-failed-recipients',
] as const;

const SUPPRESSED = /\b(all|autoreply|oof|dr|rn|nrn)\b/i;
const REPORT_TYPES = /^(multipart\/report|message\/(delivery-status|disposition-notification))/;
const ENCRYPTED_TYPES = /^(multipart\/encrypted|application\/(x-)?pkcs7-mime)/;
const DAEMONS = /^(mailer-daemon|postmaster|double-bounce)$/;
const MACHINE_SENDERS =
  /^(no[-_.]?reply|do[-_.]?not[-_.]?reply|bounces?|owner-.*|.*-(request|owner)|listserv|majordomo|notifications?|auto-confirm|mailer)$/;
const AUTO_SUBJECT =
  /^\s*(automatic reply|auto(matic)?[- ]?response|autoreply|out of( the)? office|abwesenheit|automatische antwort|r[ée]ponse automatique|absence du bureau|respuesta autom[áa]tica|fuera de (la )?oficina|risposta automatica|automatisch antwoord|自動返信|自动回复|автоответ)/i;

type Rule = {
  readonly gate: string;
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
    gate: 'our own mail',
    applies: (facts) =>
      facts.isOurs ||
      has(facts, OWN_MARK_HEADER.toLowerCase()) ||
      addressesOf(facts, ['from', 'sender', 'reply-to']).some((address) =>
        isOwnAddress(address, facts.ours),
      ),
  },
  {
    gate: 'empty return path',
    applies: (facts) =>
      headerValues(facts.headers, 'return-path').some((path) => /^<\s*>$/.test(path)),
  },
  {
    gate: 'mail system sender',
    applies: (facts) =>
      DAEMONS.test(localPartOf(facts.sender)) ||
      addressesOf(facts, ['return-path']).some((path) => DAEMONS.test(localPartOf(path))),
  },
  {
    gate: 'auto-submitted',
    applies: (facts) => has(facts, 'auto-submitted') && keyword(facts, 'auto-submitted') !== 'no',
  },
  {
    gate: 'delivery report',
    applies: (facts) => facts.contentTypes.some((type) => REPORT_TYPES.test(type)),
  },
  {
    gate: 'mailing list',
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
    applies: (facts) => MACHINE_FIELDS.some((name) => has(facts, name)),
  },
  {
    gate: 'machine sender',
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
    applies: (facts) => facts.calendarMethod === 'reply' || facts.calendarMethod === 'cancel',
  },
  {
    gate: 'encrypted',
    applies: (facts) => facts.contentTypes.some((type) => ENCRYPTED_TYPES.test(type)),
  },
  {
    gate: 'read receipt',
    applies: (facts) => /^(read|gelesen|lu)\s*:/i.test(subjectOf(facts)) && !facts.isAuthenticated,
  },
  {
    gate: 'automatic subject',
    applies: (facts) => AUTO_SUBJECT.test(subjectOf(facts)) && !facts.isAuthenticated,
  },
];

/** The name before the @ says that no person reads there. */
export function isMachineAddress(address: string): boolean {
  return MACHINE_SENDERS.test(localPartOf(address).replace(/\+.*$/, ''));
}

const subjectOf = (facts: MailFacts) => headerValue(facts.headers, 'subject') ?? '';

export function judgeMail(facts: MailFacts): MailVerdict {
  const rule = RULES.find((candidate) => candidate.applies(facts));
  if (rule !== undefined) return { kind: 'refuse', gate: rule.gate };
  if (/^(bulk|junk|auto_reply)$/.test(keyword(facts, 'precedence'))) {
    // Not a standard, and some people's mail carries it: never answered, but not lost unseen.
    const isAwaited = facts.isAuthenticated && facts.isListed;
    return { kind: isAwaited ? 'hold' : 'refuse', gate: 'bulk precedence' };
  }
  return { kind: 'answer' };
}

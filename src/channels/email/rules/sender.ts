// Who sent a mail (case table D3): the From line is a claim, a checked signature verifies it, the
// configured receiving server may assert it, everything else leaves it unverified.

import type { Verification } from '../../../kernel/message/message.ts';
import {
  domainOf,
  domainToAscii,
  headerValue,
  headerValues,
  type MailHeaders,
  withoutComments,
} from './address.ts';

/** One DKIM signature as checked on the raw bytes. */
export type SignatureEvidence = {
  readonly domain: string;
  readonly result: string;
  /** The signing domain belongs to the same organisation as the From domain. */
  readonly aligned: boolean;
  /** Lower-case names of the signed fields. */
  readonly signedFields: readonly string[];
  /** Signs only the first octets of the body (l=) or uses SHA-1: anyone could have added text. */
  readonly weak: boolean;
};

export type DmarcEvidence = { readonly result: string; readonly strict: boolean };

export type SenderEvidence = {
  readonly headers: MailHeaders;
  readonly address: string;
  readonly signatures: readonly SignatureEvidence[];
  readonly dmarc: DmarcEvidence;
  /** Epoch milliseconds of the Date field; undefined if missing or invalid. */
  readonly dateMs: number | undefined;
  /** Epoch milliseconds at which the receiving server accepted the mail. */
  readonly arrivedAtMs: number;
  readonly authservId: string;
};

export type SenderVerdict = {
  readonly level: Verification;
  /** For logs and `trace`. */
  readonly reason: string;
  /** The name service failed; a retry may verify the sender. */
  readonly isTemporary: boolean;
  /** A signature would verify the sender but for this problem with the date. */
  readonly dateProblem?: string;
};

/** A signed mail older than this on arrival may be a replay. */
const MAX_AGE_MS = 48 * 3_600_000;
/** Fields whose duplicates change the meaning of the mail. */
const SINGLE_FIELDS = ['from', 'to', 'subject', 'message-id'] as const;

/** Zones are numeric today; a named one stands for less than a day (RFC 5322 section 4.3). */
const NAMED_ZONE = /\s[A-Za-z]{1,5}$/;

/** Epoch milliseconds of the Date field; undefined if missing or invalid. */
export function mailDate(headers: MailHeaders): number | undefined {
  const text = withoutComments(headerValue(headers, 'date') ?? '').trim();
  const dates = [text, text.replace(NAMED_ZONE, ' +0000')].map(Date.parse);
  return dates.find((date) => !Number.isNaN(date));
}

const verdict = (level: Verification, reason: string, isTemporary = false): SenderVerdict => ({
  level,
  reason,
  isTemporary,
});

export function verifySender(evidence: SenderEvidence): SenderVerdict {
  const { headers, address, signatures, dmarc, authservId } = evidence;
  const doubled = SINGLE_FIELDS.find((name) => headerValues(headers, name).length > 1);
  if (doubled !== undefined) return verdict('unverified', `${doubled} stands twice`);
  // The date reveals a replay. What the server asserts is valid whatever the date.
  const isSigned = signatures.some((signature) => verifies(signature, evidence));
  const problem = dateProblemOf(evidence);
  if (isSigned && problem === undefined) {
    return verdict('verified', 'DKIM signature aligned with From');
  }
  const asserted = trustedAuthResults(headers, authservId);
  if (asserted !== undefined && asserts(asserted, address)) {
    return verdict('asserted', `asserted by ${asserted.authservId}`);
  }
  if (isSigned && problem !== undefined) {
    return { ...verdict('unverified', problem), dateProblem: problem };
  }
  const answered = { ...evidence, dmarc: { result: 'pass', strict: false } };
  const isTemporary = signatures.some(
    (signature) =>
      (signature.aligned && signature.result === 'temperror') ||
      (dmarc.result === 'temperror' && verifies(signature, answered)),
  );
  return verdict('unverified', isTemporary ? 'name service failed' : 'no proof', isTemporary);
}

function dateProblemOf({ headers, dateMs, arrivedAtMs }: SenderEvidence): string | undefined {
  if (headerValues(headers, 'date').length > 1) return 'more than one date';
  if (dateMs === undefined) return 'no valid date';
  return Math.abs(arrivedAtMs - dateMs) > MAX_AGE_MS ? 'date too far off' : undefined;
}

function verifies(signature: SignatureEvidence, evidence: SenderEvidence): boolean {
  const { result, aligned, weak, signedFields } = signature;
  if (result !== 'pass' || !aligned || weak) return false;
  const isSigned = (name: string) => signedFields.includes(name);
  const hasSubject = headerValues(evidence.headers, 'subject').length > 0;
  if (!isSigned('from') || !isSigned('date')) return false;
  if (hasSubject ? !isSigned('subject') : !isSigned('to')) return false;
  const { dmarc, address } = evidence;
  const isExact = domainToAscii(signature.domain) === domainOf(address);
  if (isExact) return true;
  // If the policy is strict or could not be read, a match of the organisation is not enough.
  return !dmarc.strict && (dmarc.result === 'pass' || dmarc.result === 'none');
}

function asserts(trusted: AuthResults, address: string): boolean {
  const domain = domainOf(address);
  const isOurs = (value: string | undefined) =>
    value !== undefined && domainToAscii(value.slice(value.lastIndexOf('@') + 1)) === domain;
  const dmarc = trusted.results.filter((result) => result.method === 'dmarc');
  if (dmarc.some((result) => result.result === 'fail')) return false;
  if (dmarc.some((one) => one.result === 'pass' && isOurs(one.properties.get('header.from')))) {
    return true;
  }
  return trusted.results.some(
    ({ method, result, properties }) =>
      method === 'dkim' &&
      result === 'pass' &&
      isOurs(properties.get('header.d') ?? properties.get('header.i')),
  );
}

// Parses Authentication-Results (RFC 8601) with a tokenizer: removes comments first, binds
// properties to their method, and discards the whole field for one malformed piece (cases E14,
// E15).

type AuthResult = {
  readonly method: string;
  readonly result: string;
  /** `ptype.property` in lower case, mapped to its value, e.g. `header.from`. */
  readonly properties: ReadonlyMap<string, string>;
};

type AuthResults = { readonly authservId: string; readonly results: readonly AuthResult[] };

/** No legitimate server writes more; the bound keeps the expressions below fast. */
const MAX_FIELD_CHARS = 5_000;

/** One `key=value` with the rest, or undefined if there is none. */
const PAIR = /^\s*([A-Za-z0-9._/-]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s";]+)/;

export function parseAuthResults(value: string): AuthResults | undefined {
  if (value.length > MAX_FIELD_CHARS) return undefined;
  const [head = '', ...segments] = splitOutsideQuotes(withoutComments(value));
  const [authservId = '', version, ...extra] = head.trim().split(/\s+/);
  if (authservId === '' || extra.length > 0) return undefined;
  if (version !== undefined && version !== '1') return undefined;
  const results: AuthResult[] = [];
  for (const segment of segments) {
    const text = segment.trim();
    if (text === '' || text.toLowerCase() === 'none') continue;
    const result = parseSegment(text);
    if (result === undefined) return undefined;
    results.push(result);
  }
  return { authservId: authservId.toLowerCase(), results };
}

function parseSegment(text: string): AuthResult | undefined {
  const pairs: [string, string][] = [];
  let rest = text;
  while (rest.trim() !== '') {
    const match = PAIR.exec(rest);
    if (match === null) return undefined;
    pairs.push([(match[1] ?? '').toLowerCase(), unquote(match[2] ?? '')]);
    rest = rest.slice(match[0].length);
  }
  const [first, ...properties] = pairs;
  if (first === undefined) return undefined;
  const method = first[0].replace(/\/1$/, '');
  if (!/^[a-z0-9-]+$/.test(method)) return undefined;
  const known = new Map<string, string>();
  for (const [name, value] of properties) {
    // A property given twice is ambiguous.
    if (known.has(name)) return undefined;
    known.set(name, value);
  }
  return { method, result: first[1].toLowerCase(), properties: known };
}

function unquote(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value;
}

function splitOutsideQuotes(value: string): readonly string[] {
  const parts = value.match(/(?:"(?:[^"\\]|\\.)*"|[^";])+/g);
  return parts ?? [];
}

/** Fields that a sender writes: what is below one of them was not added on delivery. */
const AUTHOR_FIELDS = new Set(['from', 'to', 'cc', 'subject', 'date', 'message-id', 'sender']);

/**
 * The results of the receiving server: the topmost field with its id, above everything that the
 * sender wrote. A server that does not remove inbound claims of its own id (RFC 8601 section 5)
 * must not be configured here.
 */
export function trustedAuthResults(
  headers: MailHeaders,
  authservId: string,
): AuthResults | undefined {
  if (authservId === '') return undefined;
  for (const { name, value } of headers) {
    if (AUTHOR_FIELDS.has(name)) return undefined;
    if (name !== 'authentication-results') continue;
    const [head = ''] = withoutComments(value).split(';');
    const claimedId = head.trim().split(/\s+/)[0]?.toLowerCase();
    if (claimedId === authservId.toLowerCase()) return parseAuthResults(value);
  }
  return undefined;
}

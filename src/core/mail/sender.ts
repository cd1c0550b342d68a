// Who sent a mail (case table D3): a From line is a claim; a signature checked by us verifies it,
// the configured receiving server may assert it, everything else leaves it unverified.

import type { Verification } from '../message.ts';
import { domainOf, domainToAscii } from './address.ts';
import { type AuthResults, trustedAuthResults } from './auth-results.ts';
import { headerValue, headerValues, type MailHeaders, withoutComments } from './headers.ts';

/** One DKIM signature, as checked on the raw bytes. */
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
  /** Epoch milliseconds of the Date field; undefined where it is missing or no date. */
  readonly dateMs: number | undefined;
  /** Epoch milliseconds at which our server took the mail in. */
  readonly arrivedAtMs: number;
  readonly authservId: string;
};

export type SenderVerdict = {
  readonly level: Verification;
  /** For logs and `trace`. */
  readonly reason: string;
  /** The name service failed, so that asking again may verify the sender. */
  readonly isTemporary: boolean;
  /** A signature would verify the sender, were it not for this problem with the date. */
  readonly dateProblem?: string;
};

/** A signed mail older than this when it arrives may be a replay. */
const MAX_AGE_MS = 48 * 3_600_000;
/** Fields that mean something else when they stand twice. */
const SINGLE_FIELDS = ['from', 'to', 'subject', 'message-id'] as const;

/** Zones are numbers today; what a name stands for is less than a day (RFC 5322 section 4.3). */
const NAMED_ZONE = /\s[A-Za-z]{1,5}$/;

/** Epoch milliseconds of the Date field; undefined where it is missing or no date. */
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
  // A replay is told by its date. What the server asserts holds whatever the date says.
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
  // Where the policy asks for the very domain, or could not be read, an organisation is not enough.
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

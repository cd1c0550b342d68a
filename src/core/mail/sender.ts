// Who sent a mail (case table D3): a From line is a claim; a signature checked by us verifies it,
// the configured receiving server may assert it, everything else leaves it unverified.

import type { Verification } from '../message.ts';
import { domainOf, domainToAscii } from './address.ts';
import { type AuthResults, trustedAuthResults } from './auth-results.ts';
import { headerValues, type MailHeaders } from './headers.ts';

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
};

/** A signed mail older than this when it arrives may be a replay. */
const MAX_AGE_MS = 48 * 3_600_000;
/** Fields that mean something else when they stand twice. */
const SINGLE_FIELDS = ['from', 'to', 'subject', 'date', 'message-id'] as const;

const verdict = (level: Verification, reason: string, isTemporary = false): SenderVerdict => ({
  level,
  reason,
  isTemporary,
});

export function verifySender(evidence: SenderEvidence): SenderVerdict {
  const doubled = SINGLE_FIELDS.find((name) => headerValues(evidence.headers, name).length > 1);
  if (doubled !== undefined) return verdict('unverified', `${doubled} stands twice`);
  const { dateMs, arrivedAtMs } = evidence;
  if (dateMs === undefined) return verdict('unverified', 'no valid date');
  if (Math.abs(arrivedAtMs - dateMs) > MAX_AGE_MS) return verdict('unverified', 'date too far off');
  if (evidence.signatures.some((signature) => verifies(signature, evidence))) {
    return verdict('verified', 'DKIM signature aligned with From');
  }
  const asserted = trustedAuthResults(evidence.headers, evidence.authservId);
  if (asserted !== undefined && asserts(asserted, evidence.address)) {
    return verdict('asserted', `asserted by ${asserted.authservId}`);
  }
  const isTemporary = evidence.signatures.some(
    (signature) => signature.aligned && signature.result === 'temperror',
  );
  return verdict('unverified', isTemporary ? 'name service failed' : 'no proof', isTemporary);
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

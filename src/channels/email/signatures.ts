// Checks DKIM and DMARC on the raw bytes with mailauth and reports what each signature really
// covers. Whether that is enough is decided in core/mail/sender.ts.

import { Readable } from 'node:stream';
import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { dmarc } from 'mailauth/lib/dmarc/index.js';
import { bytesOf, passingPieces, piecesOf, type RawMail } from './mail-spool.ts';
import { splitHeader } from './mime-limits.ts';
import { type DnsLookup, NO_SIGNATURES, type SignatureReport } from './parsed-mail.ts';
import { headerValues, parseHeaderBlock } from './rules/headers.ts';
import type { SignatureEvidence } from './rules/sender.ts';

/** More signatures than any honest mail has would only cost look-ups. */
const MAX_SIGNATURES = 8;
const MIN_KEY_BITS = 1024;
const LF = 0x0a;
const CR = 0x0d;
const MAX_ODD_PIECES = 2;

/** The parts of a mailauth result this file reads; its types leave some of them out. */
type CheckedSignature = {
  readonly signingDomain?: string;
  readonly algo?: string;
  readonly canonBodyLengthLimited?: boolean;
  readonly signingHeaders?: { readonly keys?: string };
  readonly status: {
    readonly result: string;
    readonly aligned?: unknown;
    readonly underSized?: unknown;
  };
};

export async function checkSignatures(raw: RawMail, lookup: DnsLookup): Promise<SignatureReport> {
  const { block, bodyAt } = splitHeader(raw);
  const fields = headerValues(parseHeaderBlock(block), 'dkim-signature');
  if (fields.length > MAX_SIGNATURES) return NO_SIGNATURES;
  if (fields.length > 0 && hasEndlessLine(raw)) return NO_SIGNATURES;
  // Without a signature nothing is asked of the body.
  const signed = fields.length > 0 ? raw : bytesOf(raw, 0, bodyAt);
  const options = { resolver: lookup, minBitLength: MIN_KEY_BITS };
  const checked = await dkimVerify(Readable.from(piecesOf(signed), { objectMode: false }), options);
  const results: readonly CheckedSignature[] = checked.results;
  const signatures = results.flatMap((one) => describe(one, fields));
  const passing = signatures.filter((one) => one.result === 'pass' && !one.weak);
  const policy = await dmarc({
    headerFrom: checked.headerFrom,
    spfDomains: [],
    dkimDomains: passing.map(({ domain }) => ({ id: domain, domain, aligned: true })),
    resolver: lookup,
  });
  if (policy === false) return { signatures, dmarc: { result: 'temperror', strict: true } };
  const strict = policy.alignment?.dkim.strict ?? false;
  return { signatures, dmarc: { result: policy.status.result, strict } };
}

/**
 * A line is kept while it is hashed, and so are empty ones until another comes. Honest lines have less
 * than 1,000 bytes (RFC 5322 section 2.1.1).
 */
function hasEndlessLine(raw: RawMail): boolean {
  let pieces = 0;
  for (const piece of passingPieces(raw)) {
    const isOdd = !piece.includes(LF) || piece.every((byte) => byte === LF || byte === CR);
    pieces = isOdd ? pieces + 1 : 0;
    if (pieces > MAX_ODD_PIECES) return true;
  }
  return false;
}

function describe(one: CheckedSignature, fields: readonly string[]): readonly SignatureEvidence[] {
  const domain = one.signingDomain;
  if (domain === undefined || domain === '') return [];
  const isPartial =
    one.canonBodyLengthLimited === true || fields.some((field) => /;\s*l\s*=/i.test(field));
  return [
    {
      domain: domain.toLowerCase(),
      result: one.status.result,
      aligned: typeof one.status.aligned === 'string',
      signedFields: (one.signingHeaders?.keys ?? '')
        .split(':')
        .map((name) => name.trim().toLowerCase()),
      weak: isPartial || /sha1/i.test(one.algo ?? ''),
    },
  ];
}

// Checks DKIM and DMARC on the raw bytes with mailauth and reports what each signature really
// covers. Whether that is enough is decided in core/mail-sender.ts.

import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { dmarc } from 'mailauth/lib/dmarc/index.js';
import { headerValues, parseHeaderBlock } from '../../core/mail-headers.ts';
import type { SignatureEvidence } from '../../core/mail-sender.ts';
import { splitHeader } from './mime-limits.ts';
import { type DnsLookup, NO_SIGNATURES, type SignatureReport } from './parsed-mail.ts';

/** More signatures than any honest mail has would only cost look-ups. */
const MAX_SIGNATURES = 8;
const MIN_KEY_BITS = 1024;

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

export async function checkSignatures(raw: Buffer, lookup: DnsLookup): Promise<SignatureReport> {
  const fields = headerValues(parseHeaderBlock(splitHeader(raw).block), 'dkim-signature');
  if (fields.length > MAX_SIGNATURES) return NO_SIGNATURES;
  const checked = await dkimVerify(raw, { resolver: lookup, minBitLength: MIN_KEY_BITS });
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

// The parsing thread: measures and parses one hostile mail at a time and checks its DKIM and DMARC
// signatures, so that neither time nor memory of the gateway depends on what a sender sends. DNS
// lookups go through the main thread.

import { writeSync } from 'node:fs';
import { Readable } from 'node:stream';
import { type MessagePort, parentPort } from 'node:worker_threads';
import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { dmarc } from 'mailauth/lib/dmarc/index.js';
import { type MimePart, openMail, readMail } from '../../lib/mail/parse-mail.ts';
import {
  bytesOf,
  type MimeShape,
  mendedMail,
  passingPieces,
  piecesOf,
  type RawMail,
  splitHeader,
} from '../../lib/mail/raw-mail.ts';
import { MAX_WHOLE_TEXT_CHARS } from '../../lib/mail/rules/attached.ts';
import { headOf } from '../../lib/text/cut.ts';
import {
  type DnsLookup,
  type FromParser,
  NO_SIGNATURES,
  type ParsedMail,
  type ParseResult,
  type SignatureReport,
  type ToParser,
} from './mail-reader.ts';
import { headerValues, parseHeaderBlock } from './rules/address.ts';
import { calendarMethod, describeCalendar } from './rules/calendar.ts';
import { type ReportPart, readBounce } from './rules/machine-mail.ts';
import type { SignatureEvidence } from './rules/sender.ts';
import { partsDiffer, stripQuotes } from './rules/text.ts';

type Waiting = {
  readonly resolve: (records: string[][] | string[]) => void;
  readonly reject: (error: Error) => void;
};

const REPORT_TYPE = /^(multipart\/report|message\/delivery-status)/;
const CALENDAR_TYPE = /^(text\/(x-v)?calendar|application\/ics)$/i;
const MAX_CALENDARS = 5;
const MAX_CALENDAR_BYTES = 256 * 1024;
const MAX_SUBJECT_CHARS = 1000;
const MAX_REPORT_BYTES = 64 * 1024;

if (parentPort !== null) serve(parentPort);

function serve(port: MessagePort): void {
  const waiting = new Map<number, Waiting>();
  const post = (message: FromParser) => port.postMessage(message);
  let queries = 0;

  const lookup: DnsLookup = (domain, type) =>
    new Promise((resolve, reject) => {
      queries += 1;
      waiting.set(queries, { resolve, reject });
      post({ kind: 'lookup', query: queries, domain, type });
    });

  port.on('message', (message: ToParser) => {
    if (message.kind === 'read') {
      void read(message.raw, lookup, post);
      return;
    }
    if (message.kind === 'files') {
      void files(message.raw, message.into, post);
      return;
    }
    const asker = waiting.get(message.query);
    waiting.delete(message.query);
    if (message.records !== undefined) asker?.resolve(message.records);
    else asker?.reject(Object.assign(new Error('look-up failed'), { code: message.errorCode }));
  });
}

async function read(
  raw: RawMail,
  lookup: DnsLookup,
  post: (message: FromParser) => void,
): Promise<void> {
  const mended = mendedMail(raw);
  const result: ParseResult =
    'gate' in mended
      ? { kind: 'unreadable', gate: mended.gate }
      : await parse(mended.raw, mended.shape);
  post({ kind: 'parsed', result });
  const isChecked = !('gate' in mended) || mended.isHeaderSound;
  post({
    kind: 'verified',
    report: isChecked ? await checkSignatures(raw, lookup) : NO_SIGNATURES,
  });
}

/** Writes the files one behind the other, in the order of the first reading. */
async function files(
  raw: RawMail,
  into: number,
  post: (message: FromParser) => void,
): Promise<void> {
  const sizes: number[] = [];
  const mended = mendedMail(raw);
  if ('gate' in mended) return post({ kind: 'files', sizes });
  for await (const one of openMail(mended.raw, 'files').found) {
    if (one.type === 'text') continue;
    const isWanted = !isCalendar(one.contentType);
    let bytes = 0;
    for await (const piece of one.content) {
      if (isWanted && !isWritten(into, piece)) return post({ kind: 'no_room' });
      bytes += piece.length;
    }
    if (isWanted) sizes.push(bytes);
    one.release();
  }
  post({ kind: 'files', sizes });
}

function isWritten(into: number, piece: Buffer): boolean {
  try {
    for (let written = 0; written < piece.length; ) {
      written += writeSync(into, piece, written);
    }
    return true;
  } catch {
    return false;
  }
}

async function parse(raw: RawMail, shape: MimeShape): Promise<ParseResult> {
  const isReport = shape.contentTypes.some((type) => REPORT_TYPE.test(type));
  // The start of a file is needed for calendars and all parts of a report.
  const { subject, fromName, plain, html, parts } = await readMail(raw, 'beginnings', (type) =>
    isCalendar(type) ? MAX_CALENDAR_BYTES : isReport ? MAX_REPORT_BYTES : 0,
  );
  const hasPlain = plain.trim() !== '';
  const text = headOf(hasPlain ? plain : html, MAX_WHOLE_TEXT_CHARS);
  const calendars = parts
    .filter(({ part }) => isCalendar(part.type))
    .slice(0, MAX_CALENDARS)
    .map(({ head }) => head.toString('utf8'));
  const mail: ParsedMail = {
    subject: headOf(subject, MAX_SUBJECT_CHARS),
    fromName,
    text,
    stripped: stripQuotes(text),
    partsDiffer: hasPlain && partsDiffer(plain, html),
    contentTypes: shape.contentTypes,
    calendarMethod:
      shape.calendarMethod ?? calendars.map(calendarMethod).find((method) => method !== undefined),
    attachments: parts.map(({ part }) => part).filter(({ type }) => !isCalendar(type)),
    // One entry often occurs twice, as an alternative and as a file.
    calendars: [...new Set(calendars.flatMap((ics) => describeCalendar(ics) ?? []))],
    bounce: isReport ? readBounce(parts.map(reportPart)) : undefined,
  };
  return { kind: 'parsed', mail };
}

const isCalendar = (type: string) => CALENDAR_TYPE.test(type);

const reportPart = ({ part, head }: MimePart): ReportPart => ({
  type: part.type.toLowerCase(),
  text: head.toString('latin1', 0, MAX_REPORT_BYTES),
});

// Checks DKIM and DMARC on the raw bytes with mailauth and reports what each signature covers.
// rules/sender.ts decides whether that is enough.

/** More signatures than any legitimate mail has would only cost DNS lookups. */
const MAX_SIGNATURES = 8;
const MIN_KEY_BITS = 1024;
const LF = 0x0a;
const CR = 0x0d;
const MAX_ODD_PIECES = 2;

/** The parts of a mailauth result used here; its types omit some of them. */
type CheckedSignature = {
  readonly signingDomain?: string;
  readonly algo?: string;
  readonly canonBodyLengthLimited?: boolean;
  readonly signingHeaders?: { readonly keys?: string };
  readonly status: {
    readonly result: string;
    readonly aligned?: unknown;
  };
};

async function checkSignatures(raw: RawMail, lookup: DnsLookup): Promise<SignatureReport> {
  const { block, bodyAt } = splitHeader(raw);
  const fields = headerValues(parseHeaderBlock(block), 'dkim-signature');
  if (fields.length > MAX_SIGNATURES) return NO_SIGNATURES;
  if (fields.length > 0 && hasEndlessLine(raw)) return NO_SIGNATURES;
  // Without a signature the body is not needed.
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
 * A line is kept in memory while it is hashed, and so are empty lines until another line follows.
 * Legitimate lines have less than 1,000 bytes (RFC 5322 section 2.1.1).
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

// The parsing thread: one hostile mail at a time is measured, parsed and its signatures checked
// here, so that neither time nor memory of the gateway depends on what a stranger sends. Look-ups
// go through the main thread, which owns the name service.

import { writeSync } from 'node:fs';
import { type MessagePort, parentPort } from 'node:worker_threads';
import { headOf } from '../../lib/text/cut.ts';
import { htmlToVisibleText } from './mail-contents.ts';
import type { RawMail } from './mail-spool.ts';
import { mendedMail } from './mended-mail.ts';
import type { MimeShape } from './mime-limits.ts';
import {
  type DnsLookup,
  type FromParser,
  NO_SIGNATURES,
  type ParsedMail,
  type ParseResult,
  type ToParser,
} from './parsed-mail.ts';
import { type MimePart, readFiles, readMime } from './read-mime.ts';
import { type ReportPart, readBounce } from './rules/bounce.ts';
import { calendarMethod, describeCalendar } from './rules/calendar.ts';
import { stripQuotes } from './rules/quotes.ts';
import { type AttachedPart, MAX_WHOLE_TEXT_CHARS, partsDiffer, visibleText } from './rules/text.ts';
import { checkSignatures } from './signatures.ts';

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
/** With what is not shown of it. */
const MAX_PLAIN_CHARS = 1.25 * MAX_WHOLE_TEXT_CHARS;

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

/** Writes the files one behind the other, as the first reading named them. */
async function files(
  raw: RawMail,
  into: number,
  post: (message: FromParser) => void,
): Promise<void> {
  const sizes: number[] = [];
  const mended = mendedMail(raw);
  const found = 'gate' in mended ? [] : readFiles(mended.raw);
  for await (const { type, content } of found) {
    let bytes = 0;
    for await (const piece of content) {
      if (isCalendar(type)) continue;
      if (!isWritten(into, piece)) return post({ kind: 'no_room' });
      bytes += piece.length;
    }
    if (!isCalendar(type)) sizes.push(bytes);
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
  const headBytes = (type: string) =>
    isCalendar(type) ? MAX_CALENDAR_BYTES : isReport ? MAX_REPORT_BYTES : 0;
  const found = await readMime(raw, headBytes);
  const plain = visibleText(found.text.slice(0, MAX_PLAIN_CHARS));
  const html = found.html === '' ? '' : visibleText(htmlToVisibleText(found.html));
  const hasPlain = plain.trim() !== '';
  const text = headOf(hasPlain ? plain : html, MAX_WHOLE_TEXT_CHARS);
  const calendars = found.parts
    .filter(({ type }) => isCalendar(type))
    .slice(0, MAX_CALENDARS)
    .map(({ head }) => head.toString('utf8'));
  const mail: ParsedMail = {
    subject: headOf(found.subject ?? '', MAX_SUBJECT_CHARS),
    fromName: found.fromName,
    text,
    stripped: stripQuotes(text),
    partsDiffer: hasPlain && partsDiffer(plain, html),
    contentTypes: shape.contentTypes,
    calendarMethod: shape.calendarMethod ?? calendars.map(calendarMethod).find(isMethod),
    attachments: found.parts.filter(({ type }) => !isCalendar(type)).map(named),
    // One entry often comes twice, as an alternative and as a file.
    calendars: [...new Set(calendars.flatMap((ics) => describeCalendar(ics) ?? []))],
    bounce: isReport ? readBounce(found.parts.map(reportPart)) : undefined,
  };
  return { kind: 'parsed', mail };
}

const isMethod = (method: string | undefined) => method !== undefined;

const isCalendar = (type: string) => CALENDAR_TYPE.test(type);

const named = ({ name, type, bytes, isInline }: MimePart): AttachedPart => ({
  ...{ name, type, bytes, isInline },
});

const reportPart = ({ type, head }: MimePart): ReportPart => ({
  type: type.toLowerCase(),
  text: head.toString('latin1', 0, MAX_REPORT_BYTES),
});

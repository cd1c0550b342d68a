// The parsing thread: one hostile mail at a time is measured, parsed and its signatures checked
// here, so that neither time nor memory of the gateway depends on what a stranger sends. Look-ups
// go through the main thread, which owns the name service.

import { type MessagePort, parentPort } from 'node:worker_threads';
import { simpleParser } from 'mailparser';
import { type ReportPart, readBounce } from '../../core/mail-bounce.ts';
import { calendarMethod, describeCalendar } from '../../core/mail-calendar.ts';
import { stripQuotes } from '../../core/mail-quotes.ts';
import {
  type AttachedPart,
  MAX_WHOLE_TEXT_CHARS,
  partsDiffer,
  visibleText,
} from '../../core/mail-text.ts';
import { type MimeShape, measureMime } from './mime-limits.ts';
import {
  type DnsLookup,
  type FromParser,
  NO_SIGNATURES,
  type ParsedMail,
  type ParseResult,
  type ToParser,
} from './parsed-mail.ts';
import { checkSignatures } from './signatures.ts';
import { htmlToVisibleText } from './visible-html.ts';

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
      void read(sharing(message.raw), lookup, post);
      return;
    }
    if (message.kind === 'files') {
      void files(sharing(message.raw), port);
      return;
    }
    const asker = waiting.get(message.query);
    waiting.delete(message.query);
    if (message.records !== undefined) asker?.resolve(message.records);
    else asker?.reject(Object.assign(new Error('look-up failed'), { code: message.errorCode }));
  });
}

async function read(
  raw: Buffer,
  lookup: DnsLookup,
  post: (message: FromParser) => void,
): Promise<void> {
  const shape = measureMime(raw);
  if ('gate' in shape) {
    post({ kind: 'parsed', result: { kind: 'unreadable', gate: shape.gate } });
    post({ kind: 'verified', report: NO_SIGNATURES });
    return;
  }
  post({ kind: 'parsed', result: await parse(raw, shape) });
  post({ kind: 'verified', report: await checkSignatures(raw, lookup) });
}

/** The same bytes; a large mail is not there twice. */
const sharing = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, byteLength);

async function files(raw: Buffer, port: MessagePort): Promise<void> {
  const parts = 'gate' in measureMime(raw) ? [] : (await parseMime(raw)).attachments;
  const contents = parts.filter(isFile).map(({ content }) => new Uint8Array(content));
  const message: FromParser = { kind: 'files', contents };
  port.postMessage(
    message,
    contents.map(({ buffer }) => buffer),
  );
}

const parseMime = (raw: Buffer) =>
  simpleParser(raw, {
    skipHtmlToText: true,
    skipTextToHtml: true,
    skipImageLinks: true,
    keepDeliveryStatus: true,
  });

async function parse(raw: Buffer, shape: MimeShape): Promise<ParseResult> {
  const parsed = await parseMime(raw);
  const plain = visibleText(parsed.text ?? '');
  const html = parsed.html === false ? '' : visibleText(htmlToVisibleText(parsed.html));
  const hasPlain = plain.trim() !== '';
  const text = (hasPlain ? plain : html).slice(0, MAX_WHOLE_TEXT_CHARS);
  const calendars = parsed.attachments
    .filter(isCalendar)
    .slice(0, MAX_CALENDARS)
    .map(({ content }) => content.toString('utf8', 0, MAX_CALENDAR_BYTES));
  const mail: ParsedMail = {
    subject: (parsed.subject ?? '').slice(0, MAX_SUBJECT_CHARS),
    fromName: parsed.from?.value[0]?.name,
    text,
    stripped: stripQuotes(text),
    partsDiffer: hasPlain && partsDiffer(plain, html),
    contentTypes: shape.contentTypes,
    calendarMethod: shape.calendarMethod ?? calendars.map(calendarMethod).find(isMethod),
    attachments: parsed.attachments.filter(isFile).map(describePart),
    // One entry often comes twice, as an alternative and as a file.
    calendars: [...new Set(calendars.flatMap((ics) => describeCalendar(ics) ?? []))],
    bounce: shape.contentTypes.some((type) => REPORT_TYPE.test(type))
      ? readBounce(parsed.attachments.map(reportPart))
      : undefined,
  };
  return { kind: 'parsed', mail };
}

const isMethod = (method: string | undefined) => method !== undefined;

const isCalendar = (part: { contentType: string }) => CALENDAR_TYPE.test(part.contentType);

const isFile = (part: { contentType: string }) => !isCalendar(part);

function describePart(part: {
  filename?: string | undefined;
  contentType: string;
  size: number;
  related?: boolean | undefined;
}): AttachedPart {
  return {
    name: part.filename ?? 'unnamed',
    type: part.contentType,
    bytes: part.size,
    isInline: part.related === true,
  };
}

const reportPart = (part: { contentType: string; content: Buffer }): ReportPart => ({
  type: part.contentType.toLowerCase(),
  text: part.content.toString('latin1', 0, MAX_REPORT_BYTES),
});

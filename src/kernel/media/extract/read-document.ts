// Detects from its content what a document is, and reads it. Runs in a thread of its own: every
// failure becomes a sentence.

import { htmlText } from '../../../lib/html/html-text.ts';
import { decodeText } from '../../../lib/text/decode-text.ts';
import { t } from '../../../lib/texts.ts';
import type { DocumentReading } from '../media.ts';
import { Archive } from './archive.ts';
import { ARCHIVE, DAMAGED, DocumentProblem, LOCKED, Sections, UNKNOWN } from './extract.ts';

/** Signatures of contents, a character for each byte. */
const ZIP = ['PK\x03\x04', 'PK\x05\x06'];
const OLD_OFFICE = ['\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1'];
const RTF = ['{\\rtf'];
const OTHER_ARCHIVES = [
  '\x1f\x8b',
  '7z\xbc\xaf',
  'Rar!\x1a',
  'BZh',
  '\xfd7zXZ',
  '\x28\xb5\x2f\xfd',
];
/** The signature of a PDF may be a little behind the start (ISO 32000-1, appendix H.3). */
const PDF_MARK_BYTES = 1024;
/** The header of a mail, and fields that it has (RFC 5322 section 3.6). */
const HEADER = /^(?:[!-9;-~]+[ \t]*:.*\r?\n(?:[ \t].*\r?\n)*)+\r?\n/;
const HEADER_BYTES = 64 * 1024;
const FIELDS = [/^from[ \t]*:/im, /^(?:date|received|message-id|mime-version)[ \t]*:/im];
const HTML =
  /^\s*(?:<!--[\s\S]{0,1000}?-->\s*)?<(?:!doctype\s+html|html[\s>]|head[\s>]|body[\s>])/i;
const XHTML = /^\s*<\?xml[^>]*>\s*(?:<!doctype\s+html[^>]*>\s*)?<html[\s>]/i;
/** The encoding of stream names in old office files. */
const utf16 = (text: string) => Buffer.from(text, 'utf16le').toString('latin1');
const ENCRYPTED_PACKAGE = utf16('EncryptedPackage');
/** In every Outlook message (MS-OXMSG section 2.4). */
const OUTLOOK_PROPERTIES = utf16('__properties_version1.0');

const OPEN_DOCUMENTS = new Map<string | undefined, 'text' | 'sheets' | 'slides'>([
  ['application/vnd.oasis.opendocument.text', 'text'],
  ['application/vnd.oasis.opendocument.spreadsheet', 'sheets'],
  ['application/vnd.oasis.opendocument.presentation', 'slides'],
]);

const HEAD_BYTES = 2048;
const EMPTY = t`it is empty`;
const OLD = t`it is in an old office format; saved as .docx, .xlsx or .pptx it can be read`;
const OUTLOOK = t`it is an Outlook message; saved as .eml or as text it can be read`;

export async function readDocument(content: Uint8Array): Promise<DocumentReading> {
  try {
    return await read(content);
  } catch (error) {
    const reason = error instanceof DocumentProblem ? error.message : DAMAGED;
    return { kind: 'unreadable', reason };
  }
}

async function read(content: Uint8Array): Promise<DocumentReading> {
  if (content.length === 0) throw new DocumentProblem(EMPTY);
  const head = Buffer.from(content.subarray(0, HEAD_BYTES)).toString('latin1');
  const begins = (marks: readonly string[]) => marks.some((mark) => head.startsWith(mark));
  if (begins(ZIP)) return readArchive(new Archive(content));
  if (begins(RTF)) return (await import('./rtf.ts')).readRtf(content);
  if (begins(OLD_OFFICE)) throw new DocumentProblem(oldProblem(content));
  if (begins(OTHER_ARCHIVES)) throw new DocumentProblem(ARCHIVE);
  if (isMail(content)) return (await import('./mail.ts')).readMailFile(content);
  if (head.slice(0, PDF_MARK_BYTES).includes('%PDF-')) {
    return (await import('./pdf.ts')).readPdf(content);
  }
  return readText(content);
}

function isMail(content: Uint8Array): boolean {
  const start = Buffer.from(content.subarray(0, HEADER_BYTES)).toString('latin1');
  const header = HEADER.exec(start)?.[0] ?? '';
  return FIELDS.every((field) => field.test(header));
}

function oldProblem(content: Uint8Array): string {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  if (bytes.includes(ENCRYPTED_PACKAGE, 0, 'latin1')) return LOCKED;
  return bytes.includes(OUTLOOK_PROPERTIES, 0, 'latin1') ? OUTLOOK : OLD;
}

async function readArchive(archive: Archive): Promise<DocumentReading> {
  if (archive.has('word/document.xml')) return (await import('./docx.ts')).readDocx(archive);
  if (archive.has('xl/workbook.xml')) return (await import('./xlsx.ts')).readXlsx(archive);
  if (archive.has('ppt/presentation.xml')) return (await import('./packages.ts')).readPptx(archive);
  if (archive.has('xl/workbook.bin')) throw new DocumentProblem(OLD);
  const type = archive.text('mimetype')?.trim();
  if (type === 'application/epub+zip') return (await import('./packages.ts')).readEpub(archive);
  const kind = OPEN_DOCUMENTS.get(type);
  if (kind === undefined) throw new DocumentProblem(ARCHIVE);
  return (await import('./packages.ts')).readOdf(archive, kind);
}

function readText(content: Uint8Array): DocumentReading {
  const text = decodeText(content);
  if (text === undefined) throw new DocumentProblem(UNKNOWN);
  const sections = new Sections();
  sections.add('', shown(text));
  return sections.reading(EMPTY);
}

function shown(text: string): string {
  if (XHTML.test(text)) return htmlText(text, { isXml: true });
  return HTML.test(text) ? htmlText(text) : text;
}

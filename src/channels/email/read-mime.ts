// What a mail consists of, read in one pass: words up to a limit, of its files the beginning alone or,
// when they are asked for, everything, piece by piece. So memory does not grow with the mail.

import { type AddressObject, type Headers, MailParser, type MessageText } from 'mailparser';
import { boundBodies } from './bounded-bodies.ts';
import { passingPieces, type RawMail } from './mail-spool.ts';
import type { AttachedPart } from './rules/text.ts';

export type MimePart = AttachedPart & {
  /** The beginning of its content. */
  readonly head: Buffer;
};

export type MimeContent = {
  readonly subject: string | undefined;
  readonly fromName: string | undefined;
  readonly text: string;
  readonly html: string;
  readonly parts: readonly MimePart[];
};

/** As mailparser hands it out; its types leave some of it out. */
type Found = {
  readonly type: 'attachment';
  readonly contentType: string;
  readonly filename?: string;
  readonly related?: boolean;
  readonly content: AsyncIterable<Buffer>;
  release(): void;
};

/** `headBytes`: how much is kept of a file of this type. */
export async function readMime(
  raw: RawMail,
  headBytes: (type: string) => number,
): Promise<MimeContent> {
  const { parser, headers, found } = open(raw);
  const cutBytes = boundBodies(parser, 'beginnings');
  const parts: MimePart[] = [];
  let words: Partial<MessageText> = {};
  for await (const one of found) {
    if (one.type === 'text') words = one;
    else parts.push(await partOf(one, headBytes, cutBytes));
  }
  const subject = headers.get('subject');
  return {
    subject: typeof subject === 'string' ? subject : undefined,
    fromName: addressesIn(headers.get('from'))?.value[0]?.name,
    text: words.text ?? '',
    html: typeof words.html === 'string' ? words.html : '',
    parts,
  };
}

export type FileContent = { readonly type: string; readonly content: AsyncIterable<Buffer> };

/** Its files one after the other, each to be read to its end before the next. */
export async function* readFiles(raw: RawMail): AsyncGenerator<FileContent, void, void> {
  const { parser, found } = open(raw);
  boundBodies(parser, 'files');
  for await (const one of found) {
    if (one.type === 'text') continue;
    yield { type: one.contentType, content: one.content };
    one.release();
  }
}

type Open = {
  readonly parser: MailParser;
  readonly headers: Headers;
  /** The parser waits with the next file until this one was read and released. */
  readonly found: AsyncIterable<Found | MessageText>;
};

function open(raw: RawMail): Open {
  const parser = new MailParser({
    skipHtmlToText: true,
    skipTextToHtml: true,
    skipImageLinks: true,
    keepDeliveryStatus: true,
  });
  const headers: Headers = new Map();
  parser.on('headers', (found: Headers) => {
    for (const [key, value] of found) headers.set(key, value);
  });
  feed(parser, raw).catch((error) => parser.destroy(error));
  return { parser, headers, found: parser };
}

/** A piece at a time: the parser has made a copy of it when it asks for the next. */
async function feed(parser: MailParser, raw: RawMail): Promise<void> {
  for (const piece of passingPieces(raw)) {
    await new Promise<void>((resolve, reject) => {
      parser.write(piece, (error) => (error ? reject(error) : resolve()));
    });
  }
  parser.end();
}

async function partOf(
  found: Found,
  headBytes: (type: string) => number,
  cutBytes: () => number | undefined,
): Promise<MimePart> {
  const { contentType: type, filename, related } = found;
  const wanted = headBytes(type);
  const head: Buffer[] = [];
  let bytes = 0;
  for await (const piece of found.content) {
    if (bytes < wanted) head.push(piece.subarray(0, wanted - bytes));
    bytes += piece.length;
  }
  const part = {
    ...{ name: filename ?? 'unnamed', type, isInline: related === true },
    bytes: cutBytes() ?? bytes,
    head: Buffer.concat(head),
  };
  found.release();
  return part;
}

const addressesIn = (value: unknown): AddressObject | undefined =>
  typeof value === 'object' && value !== null && 'value' in value && Array.isArray(value.value)
    ? (value as AddressObject)
    : undefined;

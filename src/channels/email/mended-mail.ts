// Brings two kinds of mail into a form that a MIME parser reads: a multipart whose delimiter is missing or
// never comes, and an S/MIME mail that is signed in one piece (RFC 8551 section 3.5.2). The signature of the
// latter proves nothing here; only its content is taken out.

import { bytesOf, type RawMail, sizeOf } from './mail-spool.ts';
import { type BrokenLimit, type MimeShape, measureMime, splitHeader } from './mime-limits.ts';

const SIGNED_TYPE = /^application\/(x-)?pkcs7-mime$/;
/** Read as a whole. */
const MAX_SIGNED_BYTES = 8 * 1024 * 1024;
/** Of a multipart that has no parts: more than a text shows. */
const MAX_PLAIN_BYTES = 1024 * 1024;
/** The first line of a part, with its header right below. */
const DELIMITER = /(?:^|\n)--([^\s"]{1,70})[ \t]*\r?\ncontent-/i;
const MAX_SEARCHED_BYTES = 64 * 1024;

type Mended = { readonly raw: RawMail; readonly shape: MimeShape };

/** The mail as it is to be parsed, or the limit it breaks. */
export function mendedMail(raw: RawMail): Mended | BrokenLimit {
  const shape = measureMime(raw);
  if ('gate' in shape) return shape;
  const [type = ''] = shape.contentTypes;
  if (SIGNED_TYPE.test(type)) return remeasured(signedContent(raw), [], { raw, shape });
  if (!type.startsWith('multipart/') || shape.parts > 1) return { raw, shape };
  return remeasured(withoutParts(raw), shape.contentTypes, { raw, shape });
}

function remeasured(
  mended: Buffer | undefined,
  types: readonly string[],
  unmended: Mended,
): Mended | BrokenLimit {
  if (mended === undefined) return unmended;
  const shape = measureMime(mended);
  if ('gate' in shape) return shape;
  return { raw: mended, shape: { ...shape, contentTypes: [...types, ...shape.contentTypes] } };
}

/** With the delimiter it uses without naming it, or else as one text. */
function withoutParts(raw: RawMail): Buffer {
  const { bodyAt } = splitHeader(raw);
  const start = `\n${bytesOf(raw, bodyAt, bodyAt + MAX_SEARCHED_BYTES).toString('latin1')}`;
  const delimiter = DELIMITER.exec(start)?.[1];
  const fields = fieldsOf(bytesOf(raw, 0, bodyAt));
  const charset = fields.flatMap(
    (field) => /charset\s*=\s*"?([\w.:-]+)/i.exec(field)?.[1] ?? [],
  )[0];
  const type =
    delimiter === undefined
      ? `text/plain; charset=${charset ?? 'utf-8'}`
      : `multipart/mixed; boundary="${delimiter}"`;
  const kept = fields.filter((field) => !/^content-type[ \t]*:/i.test(field));
  const end = delimiter === undefined ? bodyAt + MAX_PLAIN_BYTES : bodyAt + MAX_SIGNED_BYTES;
  return joined([...kept, `Content-Type: ${type}`], bytesOf(raw, bodyAt, end));
}

/** Undefined where it is encrypted, or not what it says. */
function signedContent(raw: RawMail): Buffer | undefined {
  if (sizeOf(raw) > MAX_SIGNED_BYTES) return undefined;
  const { bodyAt } = splitHeader(raw);
  const fields = fieldsOf(bytesOf(raw, 0, bodyAt));
  const body = bytesOf(raw, bodyAt, sizeOf(raw));
  const isBase64 = fields.some((field) =>
    /^content-transfer-encoding[ \t]*:\s*base64/i.test(field),
  );
  const content = eContentOf(isBase64 ? Buffer.from(body.toString('latin1'), 'base64') : body);
  if (content === undefined) return undefined;
  const inner = splitHeader(content);
  const isContent = (field: string) => /^content-/i.test(field);
  return joined(
    [
      ...fields.filter((field) => !isContent(field)),
      ...fieldsOf(content.subarray(0, inner.bodyAt)).filter(isContent),
    ],
    content.subarray(inner.bodyAt),
  );
}

/** Each with the lines it is folded into. */
const fieldsOf = (header: Buffer): readonly string[] =>
  header.toString('latin1').match(/^[^\s][^\n]*(?:\n[ \t][^\n]*)*/gm) ?? [];

const joined = (fields: readonly string[], body: Buffer) =>
  Buffer.concat([
    Buffer.from(`${fields.map((field) => `${field.trimEnd()}\r\n`).join('')}\r\n`, 'latin1'),
    body,
  ]);

/** A value in BER (X.690): its content, and where the next one begins. */
type Element = {
  readonly tag: number;
  readonly from: number;
  readonly to: number;
  readonly next: number;
};

const SEQUENCE = 0x30;
const EXPLICIT = 0xa0;
const OBJECT_ID = 0x06;
const OCTETS = 0x04;
const OCTETS_IN_PIECES = 0x24;
const SIGNED_DATA = '2a864886f70d010702';
const MAX_BER_DEPTH = 16;
const INDEFINITE = 0x80;

/** What a SignedData carries (RFC 5652 section 5). */
function eContentOf(ber: Buffer): Buffer | undefined {
  const [type, wrapped] = childrenOf(ber, elementAt(ber, 0), SEQUENCE);
  const isSigned =
    type?.tag === OBJECT_ID && ber.toString('hex', type.from, type.to) === SIGNED_DATA;
  if (!isSigned) return undefined;
  const [data] = childrenOf(ber, wrapped, EXPLICIT);
  const carried = childrenOf(ber, data, SEQUENCE).find(({ tag }) => tag === SEQUENCE);
  const [, content] = childrenOf(ber, carried, SEQUENCE);
  const [octets] = childrenOf(ber, content, EXPLICIT);
  if (octets?.tag === OCTETS) return ber.subarray(octets.from, octets.to);
  const pieces = childrenOf(ber, octets, OCTETS_IN_PIECES);
  if (pieces.length === 0) return undefined;
  return Buffer.concat(pieces.map(({ from, to }) => ber.subarray(from, to)));
}

function childrenOf(ber: Buffer, parent: Element | undefined, tag: number): readonly Element[] {
  const children: Element[] = [];
  if (parent?.tag !== tag) return children;
  for (let at = parent.from; at < parent.to; ) {
    const child = elementAt(ber, at);
    if (child === undefined) return [];
    children.push(child);
    at = child.next;
  }
  return children;
}

function elementAt(ber: Buffer, at: number, depth = 0): Element | undefined {
  const tag = ber[at];
  const size = ber[at + 1];
  if (tag === undefined || size === undefined || depth > MAX_BER_DEPTH) return undefined;
  let from = at + 2;
  if (size === INDEFINITE) {
    for (let child = from; ; ) {
      if (ber[child] === 0 && ber[child + 1] === 0)
        return { tag, from, to: child, next: child + 2 };
      const inner = elementAt(ber, child, depth + 1);
      if (inner === undefined) return undefined;
      child = inner.next;
    }
  }
  let length = size;
  if (size > INDEFINITE) {
    const digits = size - INDEFINITE;
    if (digits > 4 || from + digits > ber.length) return undefined;
    length = ber.readUIntBE(from, digits);
    from += digits;
  }
  const to = from + length;
  return to > ber.length ? undefined : { tag, from, to, next: to };
}

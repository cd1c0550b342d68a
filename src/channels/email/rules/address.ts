// The header block of a mail as a list in wire order, and mail addresses as identities: one
// spelling per mailbox and a strict reading of the From line, because it decides who commands the
// agent (cases E13, E17).

import type { AttachmentKind } from '../../../kernel/message/attachment.ts';
import type { AttachedPart } from '../../../lib/mail/rules/attached.ts';

type MailHeader = {
  /** Lower case. */
  readonly name: string;
  /** Unfolded, otherwise as written in the mail. */
  readonly value: string;
};

export type MailHeaders = readonly MailHeader[];

/** Splits a header block (without the empty line) into fields; drops malformed lines. */
export function parseHeaderBlock(block: string): MailHeaders {
  const headers: MailHeader[] = [];
  const unfolded = block.replace(/\r\n?/g, '\n').replace(/\n[ \t]+/g, ' ');
  for (const line of unfolded.split('\n')) {
    const match = /^([!-9;-~]+)[ \t]*:(.*)$/.exec(line);
    if (match === null) continue;
    headers.push({ name: (match[1] ?? '').toLowerCase(), value: (match[2] ?? '').trim() });
  }
  return headers;
}

/** Values of every field with this name, topmost first. */
export function headerValues(headers: MailHeaders, name: string): readonly string[] {
  return headers.filter((header) => header.name === name).map((header) => header.value);
}

/** Value of the topmost field with this name. */
export function headerValue(headers: MailHeaders, name: string): string | undefined {
  return headers.find((header) => header.name === name)?.value;
}

/** Removes RFC 5322 comments from a structured field value; quoted strings stay as they are. */
export function withoutComments(value: string): string {
  let result = '';
  let depth = 0;
  let isQuoted = false;
  for (let index = 0; index < value.length; index += 1) {
    const char = value.charAt(index);
    if (char === '\\' && (isQuoted || depth > 0)) {
      if (depth === 0) result += value.slice(index, index + 2);
      index += 1;
    } else if (char === '"' && depth === 0) {
      isQuoted = !isQuoted;
      result += char;
    } else if (char === '(' && !isQuoted) {
      depth += 1;
    } else if (char === ')' && !isQuoted && depth > 0) {
      depth -= 1;
      result += ' ';
    } else if (depth === 0) {
      result += char;
    }
  }
  return result;
}

/** Message ids (`<left@right>`) of a field, in order, without duplicates and malformed ones. */
export function messageIdsIn(value: string | undefined): readonly string[] {
  const ids = value?.match(/<[^<>\s@]{1,200}@[^<>\s@]{1,200}>/g) ?? [];
  return [...new Set(ids)];
}

// Which parts of a mail are carried as files and which are only named: logos of signatures, and
// files beyond the limit of one message.

const MAX_CARRIED = 20;
/** Smaller inline pictures are mostly ornaments. */
const MIN_INLINE_BYTES = 10_000;

/** `index`: position among the mail's attachments. */
type CarriedPart = AttachedPart & { readonly index: number };

export type SortedParts = {
  readonly carried: readonly CarriedPart[];
  readonly leftOut: readonly AttachedPart[];
};

export function sortParts(parts: readonly AttachedPart[]): SortedParts {
  const numbered = parts.map((part, index) => ({ ...part, index }));
  const carried = numbered.filter(isFile).slice(0, MAX_CARRIED);
  const isCarried = new Set(carried.map(({ index }) => index));
  return { carried, leftOut: parts.filter((_, index) => !isCarried.has(index)) };
}

function isFile({ isInline, type, bytes }: AttachedPart): boolean {
  if (bytes === 0) return false;
  return !isInline || (type.startsWith('image/') && bytes >= MIN_INLINE_BYTES);
}

export function kindOfPart({ type }: AttachedPart): AttachmentKind {
  const [family] = type.toLowerCase().split('/', 1);
  return family === 'image' || family === 'audio' || family === 'video' ? family : 'document';
}

type MailAddress = {
  /** Lower case, domain as A-label. */
  readonly address: string;
  /** Display name as written, possibly with encoded words; shown, never trusted. */
  readonly name?: string;
};

type FromReading =
  | { readonly kind: 'one'; readonly from: MailAddress }
  | { readonly kind: 'refused'; readonly gate: string };

const LOCAL_PART = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const MAX_LOCAL_CHARS = 64;
const HOST = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/;
const MAX_HOST_CHARS = 253;
const MAX_FROM_CHARS = 1000;

/** The domain as a lower-case A-label, or undefined if it is not a host name. */
export function domainToAscii(domain: string): string | undefined {
  if (/[\s/?#:@\\%[\]]/.test(domain)) return undefined;
  const url = `http://${domain}`;
  if (!URL.canParse(url)) return undefined;
  const { hostname } = new URL(url);
  const isHost = HOST.test(hostname) && hostname.length <= MAX_HOST_CHARS;
  return isHost && !/^[\d.]+$/.test(hostname) ? hostname : undefined;
}

/**
 * The canonical spelling of an address, or undefined if it is not a plain `local@domain`: quoted
 * local parts, comments, address literals, routes and control characters are refused, for sending
 * as well (RFC 5321 section 4.1.2 allows more than is in use).
 */
export function normalizeAddress(address: string): string | undefined {
  const at = address.lastIndexOf('@');
  if (at < 1) return undefined;
  const local = address.slice(0, at).toLowerCase();
  const domain = domainToAscii(address.slice(at + 1));
  if (domain === undefined || local.length > MAX_LOCAL_CHARS) return undefined;
  return LOCAL_PART.test(local) ? `${local}@${domain}` : undefined;
}

export const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1);
export const localPartOf = (address: string) => address.slice(0, address.lastIndexOf('@'));

/** The From line of a mail: exactly one field with exactly one address, else refused. */
export function readFrom(headers: MailHeaders): FromReading {
  const fields = headerValues(headers, 'from');
  const [field] = fields;
  if (field === undefined) return { kind: 'refused', gate: 'no From line' };
  if (fields.length > 1) return { kind: 'refused', gate: 'more than one From line' };
  if (field.length > MAX_FROM_CHARS) return { kind: 'refused', gate: 'From line too long' };
  return readMailbox(field);
}

function readMailbox(field: string): FromReading {
  const structure = structureOf(withoutComments(field));
  if (structure === undefined) return { kind: 'refused', gate: 'From is not one address' };
  const address = normalizeAddress(structure.address);
  if (address === undefined) return { kind: 'refused', gate: 'From is not a plain address' };
  const { name } = structure;
  return { kind: 'one', from: { address, ...(name === '' ? {} : { name }) } };
}

/** `name <address>` or a bare address; undefined for lists, groups and anything else. */
function structureOf(value: string): { address: string; name: string } | undefined {
  const bare = value.replace(/"(?:[^"\\]|\\.)*"/g, (quoted) => '\u0001'.repeat(quoted.length));
  if (/[,;:"]/.test(bare)) return undefined;
  const open = bare.indexOf('<');
  if (open === -1) return { address: value.trim(), name: '' };
  const close = bare.indexOf('>');
  const isOneAngle =
    close > open && bare.lastIndexOf('<') === open && bare.slice(close + 1).trim() === '';
  if (!isOneAngle) return undefined;
  const name = value
    .slice(0, open)
    .trim()
    .replace(/^"(.*)"$/s, '$1')
    .replace(/\\(.)/g, '$1');
  return { address: value.slice(open + 1, close).trim(), name };
}

/** Every address-like text of a field, normalised: enough to ask whether one of them is our own. */
export function addressesIn(value: string): readonly string[] {
  const words = withoutComments(value).split(/[\s<>,;:"()]+/);
  return words.flatMap((word) => (word.includes('@') ? (normalizeAddress(word) ?? []) : []));
}

/** The mailbox of an address: without its plus tag. */
function baseAddress(address: string): string {
  return `${localPartOf(address).replace(/\+.*$/, '')}@${domainOf(address)}`;
}

export function isOwnAddress(address: string, own: readonly string[]): boolean {
  const base = baseAddress(address);
  return own.some((candidate) => baseAddress(candidate) === base);
}

export const MAX_ADDRESS_CHARS = 254;
const UNSEEN = /[\s\p{C}\p{Default_Ignorable_Code_Point}]/u;
/** Characters with which relays and shells route mail: `bob%there@here`, `there!bob`. */
const ROUTING = /[%!|`]/;

/**
 * The canonical spelling of an address for mail that the agent starts (case E28): what
 * `normalizeAddress` accepts, without invisible characters, at a host with more than one label.
 */
export function recipientOf(address: string): string | undefined {
  if (UNSEEN.test(address) || ROUTING.test(address) || address.split('@').length !== 2)
    return undefined;
  const normalized = normalizeAddress(address);
  if (normalized === undefined || normalized.length > MAX_ADDRESS_CHARS) return undefined;
  return domainOf(normalized).includes('.') ? normalized : undefined;
}

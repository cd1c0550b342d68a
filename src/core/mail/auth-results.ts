// Authentication-Results (RFC 8601) read by a real tokenizer: comments out first, properties bound
// to their own method, and one malformed piece makes the whole field worthless (cases E14, E15).

import { type MailHeaders, withoutComments } from './headers.ts';

export type AuthResult = {
  readonly method: string;
  readonly result: string;
  /** `ptype.property` in lower case to its value, e.g. `header.from`. */
  readonly properties: ReadonlyMap<string, string>;
};

export type AuthResults = { readonly authservId: string; readonly results: readonly AuthResult[] };

/** No honest server writes more; the expressions below stay fast. */
const MAX_FIELD_CHARS = 5_000;

/** One `key=value` with its rest, or undefined where there is none. */
const PAIR = /^\s*([A-Za-z0-9._/-]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s";]+)/;

export function parseAuthResults(value: string): AuthResults | undefined {
  if (value.length > MAX_FIELD_CHARS) return undefined;
  const [head = '', ...segments] = splitOutsideQuotes(withoutComments(value));
  const [authservId = '', version, ...extra] = head.trim().split(/\s+/);
  if (authservId === '' || extra.length > 0) return undefined;
  if (version !== undefined && version !== '1') return undefined;
  const results: AuthResult[] = [];
  for (const segment of segments) {
    const text = segment.trim();
    if (text === '' || text.toLowerCase() === 'none') continue;
    const result = parseSegment(text);
    if (result === undefined) return undefined;
    results.push(result);
  }
  return { authservId: authservId.toLowerCase(), results };
}

function parseSegment(text: string): AuthResult | undefined {
  const pairs: [string, string][] = [];
  let rest = text;
  while (rest.trim() !== '') {
    const match = PAIR.exec(rest);
    if (match === null) return undefined;
    pairs.push([(match[1] ?? '').toLowerCase(), unquote(match[2] ?? '')]);
    rest = rest.slice(match[0].length);
  }
  const [first, ...properties] = pairs;
  if (first === undefined) return undefined;
  const method = first[0].replace(/\/1$/, '');
  if (!/^[a-z0-9-]+$/.test(method)) return undefined;
  const known = new Map<string, string>();
  for (const [name, value] of properties) {
    // A property given twice says nothing certain.
    if (known.has(name)) return undefined;
    known.set(name, value);
  }
  return { method, result: first[1].toLowerCase(), properties: known };
}

function unquote(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value;
}

function splitOutsideQuotes(value: string): readonly string[] {
  const parts = value.match(/(?:"(?:[^"\\]|\\.)*"|[^";])+/g);
  return parts ?? [];
}

/** Fields a sender writes: what stands below one of them was not added on delivery. */
const AUTHOR_FIELDS = new Set(['from', 'to', 'cc', 'subject', 'date', 'message-id', 'sender']);

/**
 * The results our receiving server wrote: the topmost field with its id, above everything the
 * sender wrote. A server that does not remove inbound claims of its own id (RFC 8601 section 5)
 * must not be configured here.
 */
export function trustedAuthResults(
  headers: MailHeaders,
  authservId: string,
): AuthResults | undefined {
  if (authservId === '') return undefined;
  for (const { name, value } of headers) {
    if (AUTHOR_FIELDS.has(name)) return undefined;
    if (name !== 'authentication-results') continue;
    const [head = ''] = withoutComments(value).split(';');
    const claimedId = head.trim().split(/\s+/)[0]?.toLowerCase();
    if (claimedId === authservId.toLowerCase()) return parseAuthResults(value);
  }
  return undefined;
}

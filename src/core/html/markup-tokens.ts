// Reads XML and HTML as a flat row of tags and texts, whatever is wrong with them. Declares nothing,
// expands nothing but characters, loads nothing; runs once over the text. HTML is cut into tags exactly
// as a browser does it (HTML Standard, 13.2.5): what a browser hides must not be read as text here.

import { decodeCharacters } from './characters.ts';

export type MarkupToken =
  | {
      readonly type: 'open';
      /** Lower case, with its prefix: `a:t`. */
      readonly name: string;
      /** As written, for `attributeOf`. */
      readonly attributes: string;
      /** `<x/>`; in HTML such an element is open. */
      readonly isClosed: boolean;
    }
  | { readonly type: 'close'; readonly name: string }
  | { readonly type: 'text'; readonly text: string };

/** XHTML is XML whose scripts may hold what is no markup. */
export type MarkupRules = 'xml' | 'html' | 'xhtml';

/** What stands in them is no markup and is left out. */
const RAW = new Set('script style textarea title xmp iframe noembed noframes'.split(' '));
const TAG_NAME = /\/?([A-Za-z_][^\s/>]*)/y;
const GAP = /[\s/]*/y;
const NAME = /=?[^\s/>=]*/y;
const EQUALS = /\s*=\s*/y;
const BARE_VALUE = /[^\s>]*/y;
const COMMENT_END = /--!?>/g;

export function* markupTokens(
  source: string,
  rules: MarkupRules = 'xml',
): Generator<MarkupToken, void, void> {
  let at = 0;
  while (at < source.length) {
    const next = source.indexOf('<', at);
    const textEnd = next < 0 ? source.length : next;
    if (textEnd > at) yield textToken(source.slice(at, textEnd));
    if (next < 0) return;
    const special = specialAt(source, next, rules);
    if (special !== undefined) {
      if (special.text !== '') yield { type: 'text', text: special.text };
      at = special.end;
      continue;
    }
    const name = matchAt(TAG_NAME, source, next + 1);
    if (name === undefined) {
      yield { type: 'text', text: '<' };
      at = next + 1;
      continue;
    }
    const nameEnd = next + 1 + name.length;
    const end = tagEnd(source, nameEnd);
    // A tag without an end swallows the rest.
    if (end === undefined) return;
    at = end + 1;
    const lower = name.replace('/', '').toLowerCase();
    if (name.startsWith('/')) {
      yield { type: 'close', name: lower };
      continue;
    }
    const isClosed = rules !== 'html' && source[end - 1] === '/';
    yield { type: 'open', name: lower, attributes: source.slice(nameEnd, end), isClosed };
    if (rules !== 'xml' && !isClosed && RAW.has(lower)) at = endOfRaw(source, at, lower);
  }
}

/** Comments, declarations and instructions; undefined where a tag or a text begins. */
function specialAt(source: string, at: number, rules: MarkupRules) {
  const until = (end: string, from: number) => {
    const found = source.indexOf(end, from);
    return found < 0 ? source.length : found + end.length;
  };
  if (source.startsWith('<!--', at)) {
    // `<!-->` is a whole comment.
    COMMENT_END.lastIndex = at + 2;
    return { text: '', end: COMMENT_END.test(source) ? COMMENT_END.lastIndex : source.length };
  }
  if (rules !== 'html' && source.startsWith('<![CDATA[', at)) {
    const end = until(']]>', at);
    return { text: source.slice(at + '<![CDATA['.length, end).replace(/\]\]>$/, ''), end };
  }
  const isBogus = /^<(?:[!?]|\/[^A-Za-z_])/.test(source.slice(at, at + 3));
  return isBogus ? { text: '', end: until('>', at) } : undefined;
}

function matchAt(pattern: RegExp, source: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0];
}

type Attribute = { readonly name: string; readonly value: string; readonly end: number };

/** The attribute that begins behind the blanks at this place; `end` of the text where a quote is open. */
function attributeAt(source: string, from: number): Attribute {
  const name = matchAt(NAME, source, from) ?? '';
  const afterName = from + name.length;
  const equals = matchAt(EQUALS, source, afterName);
  if (equals === undefined) return { name, value: '', end: afterName };
  const start = afterName + equals.length;
  const quote = source[start];
  if (quote !== '"' && quote !== "'") {
    const value = matchAt(BARE_VALUE, source, start) ?? '';
    return { name, value, end: start + value.length };
  }
  const close = source.indexOf(quote, start + 1);
  if (close < 0) return { name, value: source.slice(start + 1), end: source.length };
  return { name, value: source.slice(start + 1, close), end: close + 1 };
}

/** Where the tag's `>` stands. */
function tagEnd(source: string, from: number): number | undefined {
  for (let at = from; ; ) {
    at += (matchAt(GAP, source, at) ?? '').length;
    if (at >= source.length) return undefined;
    if (source[at] === '>') return at;
    at = attributeAt(source, at).end;
  }
}

function endOfRaw(source: string, from: number, name: string): number {
  const end = new RegExp(`</${name}[\\s/>]`, 'gi');
  end.lastIndex = from;
  return end.exec(source)?.index ?? source.length;
}

const textToken = (raw: string): MarkupToken => ({ type: 'text', text: decodeCharacters(raw) });

/** Undefined where the tag has none of this name; the first where it has several. */
export function attributeOf(attributes: string, wanted: string): string | undefined {
  const lower = wanted.toLowerCase();
  for (let at = 0; ; ) {
    at += (matchAt(GAP, attributes, at) ?? '').length;
    if (at >= attributes.length) return undefined;
    const { name, value, end } = attributeAt(attributes, at);
    if (name.toLowerCase() === lower) return decodeCharacters(value);
    at = end;
  }
}

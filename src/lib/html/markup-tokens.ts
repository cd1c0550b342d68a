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
const TAG_NAME = /\/?[A-Za-z_][^\s/>]*/y;
const GAP = /[\s/]*/y;
const NAME = /=?[^\s/>=]*/y;
const EQUALS = /\s*=\s*/y;
const BARE_VALUE = /[^\s>]*/y;
const BOGUS = /<(?:[!?]|\/[^A-Za-z_])/y;
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
    const nameEnd = endOf(TAG_NAME, source, next + 1);
    if (nameEnd === next + 1) {
      yield { type: 'text', text: '<' };
      at = nameEnd;
      continue;
    }
    const end = tagEnd(source, nameEnd);
    // A tag without an end swallows the rest.
    if (end === undefined) return;
    at = end + 1;
    const isClosing = source[next + 1] === '/';
    const lower = source.slice(next + (isClosing ? 2 : 1), nameEnd).toLowerCase();
    if (isClosing) {
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
  return endOf(BOGUS, source, at) > at ? { text: '', end: until('>', at) } : undefined;
}

/** Where the match that begins here ends; here where there is none. */
function endOf(pattern: RegExp, source: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(source) ? pattern.lastIndex : at;
}

type Attribute = {
  readonly nameEnd: number;
  /** Undefined where it has none. */
  readonly value: readonly [start: number, end: number] | undefined;
  readonly end: number;
};

/** The attribute that begins here; it ends with the text where its quote stays open. */
function attributeAt(source: string, at: number): Attribute {
  const nameEnd = endOf(NAME, source, at);
  const start = endOf(EQUALS, source, nameEnd);
  if (start === nameEnd) return { nameEnd, value: undefined, end: nameEnd };
  const quote = source[start];
  if (quote !== '"' && quote !== "'") {
    const end = endOf(BARE_VALUE, source, start);
    return { nameEnd, value: [start, end], end };
  }
  const close = source.indexOf(quote, start + 1);
  const end = close < 0 ? source.length : close;
  return { nameEnd, value: [start + 1, end], end: close < 0 ? end : close + 1 };
}

/** Where the tag's `>` stands. */
function tagEnd(source: string, from: number): number | undefined {
  for (let at = from; ; at = attributeAt(source, at).end) {
    at = endOf(GAP, source, at);
    if (at >= source.length) return undefined;
    if (source[at] === '>') return at;
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
  for (let at = endOf(GAP, attributes, 0); at < attributes.length; ) {
    const { nameEnd, value, end } = attributeAt(attributes, at);
    const isWanted =
      nameEnd - at === lower.length && attributes.slice(at, nameEnd).toLowerCase() === lower;
    if (isWanted) return value === undefined ? '' : decodeCharacters(attributes.slice(...value));
    at = endOf(GAP, attributes, end);
  }
  return undefined;
}

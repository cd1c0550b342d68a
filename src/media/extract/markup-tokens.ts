// Reads XML and HTML as a flat row of tags and texts, whatever is wrong with them. Declares nothing,
// expands nothing but characters, loads nothing; runs once over the text.

import { decodeCharacters } from './characters.ts';

export type MarkupToken =
  | {
      readonly type: 'open';
      /** Lower case, with its prefix: `a:t`. */
      readonly name: string;
      /** As written, for `attributeOf`. */
      readonly attributes: string;
      readonly isClosed: boolean;
    }
  | { readonly type: 'close'; readonly name: string }
  | { readonly type: 'text'; readonly text: string };

const TAG = /<(\/?)([A-Za-z_][\w:.-]{0,99})((?:[^<>"']|"[^"]*"|'[^']*')*?)(\/?)>/y;
/** What has other rules than markup: where it begins and how it ends. */
const SPECIALS = [
  ['<!--', '-->'],
  ['<![CDATA[', ']]>'],
  ['<!', '>'],
  ['<?', '>'],
] as const;

/** `rawElements`: whose content is no markup up to their end tag. */
export function* markupTokens(
  source: string,
  rawElements: ReadonlySet<string> = new Set(),
): Generator<MarkupToken, void, void> {
  let at = 0;
  while (at < source.length) {
    const next = source.indexOf('<', at);
    const textEnd = next < 0 ? source.length : next;
    if (textEnd > at) yield textToken(source.slice(at, textEnd));
    if (next < 0) return;
    const special = SPECIALS.find(([begin]) => source.startsWith(begin, next));
    if (special !== undefined) {
      const [begin, end] = special;
      const found = source.indexOf(end, next + begin.length);
      const inner = source.slice(next + begin.length, found < 0 ? source.length : found);
      if (begin === '<![CDATA[') yield { type: 'text', text: inner };
      at = found < 0 ? source.length : found + end.length;
      continue;
    }
    const tag = tagAt(source, next);
    if (tag === undefined) {
      yield { type: 'text', text: '<' };
      at = next + 1;
      continue;
    }
    yield tag.token;
    at = tag.end;
    const { token } = tag;
    if (token.type === 'open' && !token.isClosed && rawElements.has(token.name)) {
      at = endOfRaw(source, at, token.name);
    }
  }
}

function tagAt(source: string, at: number) {
  TAG.lastIndex = at;
  const match = TAG.exec(source);
  if (match === null) return undefined;
  const [whole, slash, name = '', attributes = '', selfClosing] = match;
  const lower = name.toLowerCase();
  const token: MarkupToken =
    slash === '/'
      ? { type: 'close', name: lower }
      : { type: 'open', name: lower, attributes, isClosed: selfClosing === '/' };
  return { token, end: at + whole.length };
}

function endOfRaw(source: string, from: number, name: string): number {
  const end = new RegExp(`</${name}[\\s>]`, 'gi');
  end.lastIndex = from;
  return end.exec(source)?.index ?? source.length;
}

const textToken = (raw: string): MarkupToken => ({ type: 'text', text: decodeCharacters(raw) });

/** Undefined where the tag has none of this name. */
export function attributeOf(attributes: string, name: string): string | undefined {
  const escaped = name.replace(/[.]/g, '\\.');
  const pattern = new RegExp(
    `(?:^|\\s)${escaped}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s"'>]+))`,
    'i',
  );
  const match = pattern.exec(attributes);
  if (match === null) return undefined;
  return decodeCharacters(match[1] ?? match[2] ?? match[3] ?? '');
}

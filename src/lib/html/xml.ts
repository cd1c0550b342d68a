// XML as a sequence of tags and texts, and as a tree, however malformed. The tokenizer is that of
// HTML: names are in lower case, with their prefix; character references are resolved, nothing is
// declared or loaded.

import {
  type DefaultTreeAdapterTypes,
  defaultTreeAdapter,
  html,
  type Token,
  Tokenizer,
  TokenizerMode,
} from 'parse5';

export type XmlElement = DefaultTreeAdapterTypes.Element;

type XmlToken =
  | {
      readonly type: 'open';
      readonly name: string;
      readonly attrs: Token.Attribute[];
      /** `<x/>` */
      readonly isClosed: boolean;
    }
  | { readonly type: 'close'; readonly name: string }
  | { readonly type: 'text'; readonly text: string };

type Opening = Extract<XmlToken, { readonly type: 'open' }>;

/** Scripts of XHTML may contain text that is no markup. */
const RAW = new Set(['script', 'style']);
const CHUNK_CHARS = 65_536;
/** Deeper than any document is written; deeper elements become siblings. */
const MAX_DEPTH = 256;

export function* xmlTokens(source: string): Generator<XmlToken, void, void> {
  let found: XmlToken[] = [];
  const ignore = () => undefined;
  const onText = ({ chars }: Token.CharacterToken) => {
    found.push({ type: 'text', text: chars });
  };
  const tokenizer = new Tokenizer(
    {},
    {
      onStartTag({ tagName: name, attrs, selfClosing: isClosed }) {
        found.push({ type: 'open', name, attrs, isClosed });
        if (RAW.has(name) && !isClosed) tokenizer.state = TokenizerMode.RAWTEXT;
      },
      onEndTag: ({ tagName: name }) => void found.push({ type: 'close', name }),
      onCharacter: onText,
      onWhitespaceCharacter: onText,
      ...{ onNullCharacter: ignore, onComment: ignore, onDoctype: ignore, onEof: ignore },
    },
  );
  // Only then are CDATA sections handled as in XML.
  tokenizer.inForeignNode = true;
  for (let at = 0; at < source.length; at += CHUNK_CHARS) {
    const end = at + CHUNK_CHARS;
    tokenizer.write(source.slice(at, end), end >= source.length);
    yield* found;
    found = [];
  }
}

/** The element that starts with this tag; consumes all its tokens. */
export function elementOf(open: Opening, tokens: Iterator<XmlToken, void>): XmlElement {
  const root = newElement(open);
  const path = [root];
  let beyond = 0;
  for (let next = tokens.next(); path.length > 0 && !open.isClosed; next = tokens.next()) {
    const parent = path.at(-1);
    if (next.done === true || parent === undefined) break;
    const token = next.value;
    if (token.type === 'text') defaultTreeAdapter.insertText(parent, token.text);
    else if (token.type === 'open') {
      const element = newElement(token);
      defaultTreeAdapter.appendChild(parent, element);
      if (token.isClosed) continue;
      if (path.length < MAX_DEPTH) path.push(element);
      else beyond += 1;
    } else if (beyond > 0) beyond -= 1;
    else {
      const at = path.findLastIndex(({ tagName }) => tagName === token.name);
      if (at >= 0) path.length = at;
      if (at === 0) break;
    }
  }
  return root;
}

const newElement = ({ name, attrs }: Opening): XmlElement =>
  defaultTreeAdapter.createElement(name, html.NS.HTML, attrs);

/** The whole document below one element. */
export const parseXml = (source: string): XmlElement =>
  elementOf({ type: 'open', name: '', attrs: [], isClosed: false }, xmlTokens(source));

/** Undefined if the element has no attribute of this name; the first if it has several. */
export const attributeOf = (
  { attrs }: { readonly attrs: readonly Token.Attribute[] },
  wanted: string,
): string | undefined => attrs.find(({ name }) => name === wanted)?.value;

/** Some programs write names with a prefix, others without. */
export const localName = (name: string): string => name.slice(name.indexOf(':') + 1);

/** The direct children, of this name if one is given, with any prefix. */
export const childrenOf = (element: XmlElement, name?: string): readonly XmlElement[] =>
  element.childNodes.filter(
    (node): node is XmlElement =>
      'tagName' in node && (name === undefined || localName(node.tagName) === name),
  );

/** All text in it. */
export function xmlText(element: XmlElement): string {
  return element.childNodes
    .map((node) => ('value' in node ? node.value : 'tagName' in node ? xmlText(node) : ''))
    .join('');
}

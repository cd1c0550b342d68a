// XML and HTML as a flat sequence of tags and texts, however malformed, with character references
// resolved; and which elements are open at a place (HTML Standard, 13.2.6). Declares nothing, loads
// nothing, runs once over the text.

const LATIN_1 =
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 ' +
  'acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde ' +
  'Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute ' +
  'Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde ' +
  'auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ' +
  'ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml';
const GREEK =
  'Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - Sigma Tau ' +
  'Upsilon Phi Chi Psi Omega - - - - - - - alpha beta gamma delta epsilon zeta eta theta iota kappa lambda ' +
  'mu nu xi omicron pi rho sigmaf sigma tau upsilon phi chi psi omega';
const OTHERS =
  'quot:" amp:& lt:< gt:> apos:\' ndash:– mdash:— hellip:… bull:• lsquo:‘ rsquo:’ sbquo:‚ ldquo:“ rdquo:” ' +
  'bdquo:„ lsaquo:‹ rsaquo:› dagger:† Dagger:‡ permil:‰ prime:′ Prime:″ trade:™ euro:€ larr:← uarr:↑ ' +
  'rarr:→ darr:↓ harr:↔ rArr:⇒ hArr:⇔ minus:− infin:∞ asymp:≈ ne:≠ le:≤ ge:≥ radic:√ sum:∑ prod:∏ part:∂ ' +
  'int:∫ check:✓ fnof:ƒ OElig:Œ oelig:œ Scaron:Š scaron:š Yuml:Ÿ circ:ˆ tilde:˜ colon:: semi:; comma:, ' +
  'period:. num:# percnt:% lpar:( rpar:) excl:! sol:/ bsol:\\';

const inOrder = (names: string, from: number): readonly (readonly [string, string])[] =>
  names.split(' ').map((name, index) => [name, String.fromCodePoint(from + index)]);
const NAMED: ReadonlyMap<string, string> = new Map([
  ...inOrder(LATIN_1, 0xa0),
  ...inOrder(GREEK, 0x391),
  ...OTHERS.split(' ').map(
    (pair) => [pair.split(':', 1)[0] ?? '', pair.slice(pair.indexOf(':') + 1)] as const,
  ),
  ...(['nbsp', 'ensp', 'emsp', 'thinsp', 'Tab', 'NewLine'] as const).map(
    (name) => [name, ' '] as const,
  ),
  ['shy', ''],
  ['zwnj', '\u200c'],
  ['zwj', '\u200d'],
]);

const REFERENCE = /&(?:#(\d{1,7});?|#[xX]([0-9a-fA-F]{1,6});?|([A-Za-z][A-Za-z0-9]{1,9});)/g;
const LAST_CODE_POINT = 0x10ffff;

function decodeCharacters(text: string): string {
  if (!text.includes('&')) return text;
  return text.replace(REFERENCE, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return NAMED.get(name) ?? whole;
    return characterOf(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16));
  });
}

function characterOf(code: number): string {
  // Old programs number characters as Windows does (HTML Standard, 13.2.5.80).
  if (code >= 0x80 && code < 0xa0)
    return new TextDecoder('windows-1252').decode(Uint8Array.of(code));
  const isCharacter = code > 0 && code <= LAST_CODE_POINT && (code < 0xd800 || code > 0xdfff);
  return isCharacter ? String.fromCodePoint(code) : '\ufffd';
}

// Reads XML and HTML as a flat row of tags and texts, whatever is wrong with them. Declares nothing,
// expands nothing but characters, loads nothing; runs once over the text. HTML is cut into tags exactly
// as a browser does it (HTML Standard, 13.2.5): what a browser hides must not be read as text here.

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
type MarkupRules = 'xml' | 'html' | 'xhtml';

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

// Which elements are open at a place of a page, as a browser sees it where end tags are left out or
// stand in the wrong order (HTML Standard, 13.2.6), as far as that decides what is seen and what
// belongs into which cell.

/** Stand on lines of their own. */
export const BLOCKS: ReadonlySet<string> = new Set([
  ...'address article aside blockquote body center caption dd details dialog dir div dl dt'.split(
    ' ',
  ),
  ...'fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup html legend li'.split(
    ' ',
  ),
  ...'main menu nav ol p pre search section summary table tbody td tfoot th thead tr ul xmp'.split(
    ' ',
  ),
]);
export const VOID: ReadonlySet<string> = new Set(
  'area base basefont bgsound br col embed frame hr img input link meta param source track wbr'.split(
    ' ',
  ),
);
/** What an end tag of another element cannot reach across. */
const BORDERS: ReadonlySet<string> = new Set([
  ...BLOCKS,
  ...'applet button iframe marquee noscript object select template'.split(' '),
]);
const TABLE_PARTS = new Set('caption colgroup tbody td tfoot th thead tr'.split(' '));
const ROW_GROUPS = new Set(['tbody', 'tfoot', 'thead', 'table']);
/** An end tag inside of them closes nothing outside. */
const SCOPES = new Set('table td th caption template object button'.split(' '));
/** Their end may stand outside of a block that began in them. */
const FORMATTING = new Set('a b big code em font i nobr s small strike strong tt u'.split(' '));
const LEAVES_OPEN = new Set(['body', 'html']);
const HEADING = /^h[1-6]$/;
/** Deeper than any page is written; a browser has such a limit too. */
const MAX_DEPTH = 256;

type OpenElement = {
  readonly name: string;
  /** Hidden by itself or by one around it. */
  readonly hidden: 'all' | 'size' | undefined;
  /** Called once, when it is closed. */
  readonly end: () => void;
};

export class OpenElements {
  readonly #open: OpenElement[] = [];
  readonly #counts = new Map<string, number>();
  /** Hidden content was nested too deep to tell where it ends. */
  #isLost = false;

  get hidden(): OpenElement['hidden'] {
    return this.#isLost ? 'all' : this.#open.at(-1)?.hidden;
  }

  has(name: string): boolean {
    return (this.#counts.get(name) ?? 0) > 0;
  }

  /** Elements in it are not followed any more, their text is. */
  get isFull(): boolean {
    return this.#open.length >= MAX_DEPTH;
  }

  /** Something hidden begins, or goes on, where its end cannot be told. */
  hideRest(): void {
    this.#isLost = true;
  }

  push(element: OpenElement): void {
    this.#open.push(element);
    this.#counts.set(element.name, (this.#counts.get(element.name) ?? 0) + 1);
  }

  /** Closes what cannot hold an element of this name. Whether a row has to be opened before it. */
  makeRoomFor(name: string): 'ready' | 'row' {
    if (TABLE_PARTS.has(name)) return this.#makeRoomInTable(name);
    if (name === 'li') this.#closeItem(['li']);
    else if (name === 'dt' || name === 'dd') this.#closeItem(['dt', 'dd']);
    if (HEADING.test(name) && HEADING.test(this.#open.at(-1)?.name ?? '')) this.#pop();
    if (BLOCKS.has(name)) this.#closeInScope('p');
    else if (name === 'a') this.#closeInScope('a');
    return 'ready';
  }

  close(name: string): void {
    if (LEAVES_OPEN.has(name)) return;
    if (name === 'table') this.#closeTo(this.#lastOf('table'));
    else if (TABLE_PARTS.has(name)) {
      const at = this.#lastOf(name);
      if (at > this.#lastOf('table')) this.#closeTo(at);
    } else if (FORMATTING.has(name)) this.#closeFormatting(name);
    else if (BORDERS.has(name)) this.#closeInScope(name);
    else {
      const at = this.#find(name, BORDERS);
      if (at >= 0) this.#closeTo(at);
    }
  }

  closeAll(): void {
    this.#closeTo(0);
  }

  #makeRoomInTable(name: string): 'ready' | 'row' {
    const isCell = name === 'td' || name === 'th';
    const table = this.#lastOf('table');
    if (table < 0) {
      const names = isCell ? ['td', 'th'] : [...TABLE_PARTS];
      this.#closeTo(this.#open.findIndex((open) => names.includes(open.name)));
      return 'ready';
    }
    const isHolder = (open: string) =>
      isCell
        ? open === 'tr' || ROW_GROUPS.has(open)
        : name === 'tr'
          ? ROW_GROUPS.has(open)
          : open === 'table';
    while (this.#open.length > table + 1 && !isHolder(this.#open.at(-1)?.name ?? '')) this.#pop();
    return isCell && this.#open.at(-1)?.name !== 'tr' ? 'row' : 'ready';
  }

  /** An item of the innermost list. */
  #closeItem(names: readonly string[]): void {
    for (let at = this.#open.length - 1; at >= 0; at -= 1) {
      const name = this.#open[at]?.name ?? '';
      if (names.includes(name)) {
        this.#closeTo(at);
        return;
      }
      if (BLOCKS.has(name) && !['address', 'div', 'p'].includes(name)) return;
    }
  }

  #closeInScope(name: string): void {
    const isHeading = HEADING.test(name);
    const at = isHeading
      ? this.#findIn((open) => HEADING.test(open), SCOPES)
      : this.#find(name, SCOPES);
    if (at >= 0) this.#closeTo(at);
  }

  /** What began inside of it stays open. */
  #closeFormatting(name: string): void {
    const at = this.#find(name, SCOPES);
    if (at < 0) return;
    const holdsBlock = this.#open.slice(at + 1).some((open) => BORDERS.has(open.name));
    if (!holdsBlock) this.#closeTo(at);
    else for (const element of this.#open.splice(at, 1)) this.#ended(element);
  }

  #find(name: string, border: ReadonlySet<string>): number {
    return this.has(name) ? this.#findIn((open) => open === name, border) : -1;
  }

  #findIn(isWanted: (name: string) => boolean, border: ReadonlySet<string>): number {
    for (let at = this.#open.length - 1; at >= 0; at -= 1) {
      const name = this.#open[at]?.name ?? '';
      if (isWanted(name)) return at;
      if (border.has(name)) return -1;
    }
    return -1;
  }

  #lastOf(name: string): number {
    return this.has(name) ? this.#open.findLastIndex((open) => open.name === name) : -1;
  }

  #closeTo(at: number): void {
    while (at >= 0 && this.#open.length > at) this.#pop();
  }

  #pop(): void {
    const element = this.#open.pop();
    if (element !== undefined) this.#ended(element);
  }

  #ended({ name, end }: OpenElement): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 1) - 1);
    end();
  }
}

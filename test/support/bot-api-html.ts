// The strict half of Telegram's HTML mode (Bot API, "HTML style"): what the real parser refuses is
// refused with its words; what the documentation forbids but the server lets pass is a breach.

export type Entity = {
  readonly type: string;
  readonly offset: number;
  readonly length: number;
  readonly url?: string;
  readonly language?: string;
};

export type ParsedHtml =
  | {
      readonly ok: true;
      readonly text: string;
      readonly entities: readonly Entity[];
      /** Rules of the documentation that were broken without an error. */
      readonly breaches: readonly string[];
    }
  | { readonly ok: false; readonly description: string };

const TYPES: Readonly<Record<string, string>> = {
  b: 'bold',
  strong: 'bold',
  i: 'italic',
  em: 'italic',
  u: 'underline',
  ins: 'underline',
  s: 'strikethrough',
  strike: 'strikethrough',
  del: 'strikethrough',
  'tg-spoiler': 'spoiler',
  span: 'spoiler',
  a: 'text_link',
  code: 'code',
  pre: 'pre',
  blockquote: 'blockquote',
};

const NAMED: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"' };
const ATTRIBUTE = /\s+([a-z-]+)(?:="([^"]*)")?/gy;

type Open = { readonly tag: string; readonly start: number; readonly attributes: Attributes };
type Attributes = ReadonlyMap<string, string>;

/** Visible text and entities of a body in HTML mode, or the refusal Telegram answers with. */
export function parseHtml(source: string): ParsedHtml {
  const state = new Parser(source);
  try {
    return state.run();
  } catch (error) {
    if (error instanceof EntityError) {
      return { ok: false, description: `Bad Request: can't parse entities: ${error.message}` };
    }
    throw error;
  }
}

class EntityError extends Error {}

class Parser {
  readonly #source: string;
  readonly #open: Open[] = [];
  readonly #entities: Entity[] = [];
  readonly #breaches: string[] = [];
  #text = '';
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  run(): ParsedHtml {
    const special = /[<&]/g;
    while (this.#at < this.#source.length) {
      special.lastIndex = this.#at;
      const next = special.exec(this.#source)?.index ?? this.#source.length;
      this.#text += this.#source.slice(this.#at, next);
      this.#at = next;
      if (this.#source[next] === '&') this.#reference();
      else if (this.#source.startsWith('</', next)) this.#endTag();
      else if (this.#source[next] === '<') this.#startTag();
    }
    const unclosed = this.#open.at(-1);
    if (unclosed !== undefined) {
      throw new EntityError(`Can't find end tag corresponding to start tag "${unclosed.tag}"`);
    }
    return trimmed(this.#text, this.#entities, this.#breaches);
  }

  #reference() {
    const match = /^&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]+));/i.exec(
      this.#source.slice(this.#at, this.#at + 12),
    );
    const text = match === null ? undefined : decoded(match[1], match[2], match[3]);
    if (match === null || text === undefined) {
      this.#breaches.push('"&" is not escaped');
      this.#text += '&';
      this.#at += 1;
      return;
    }
    this.#text += text;
    this.#at += match[0].length;
  }

  #startTag() {
    const offset = byteOffset(this.#source, this.#at);
    const end = this.#source.indexOf('>', this.#at);
    if (end === -1) throw new EntityError(`Unclosed start tag at byte offset ${offset}`);
    const inside = this.#source.slice(this.#at + 1, end);
    const tag = /^[^\s/>]*/.exec(inside)?.[0].toLowerCase() ?? '';
    if (TYPES[tag] === undefined) {
      throw new EntityError(`Unsupported start tag "${tag}" at byte offset ${offset}`);
    }
    const attributes = attributesOf(inside.slice(tag.length), tag, offset);
    this.#checkNesting(tag);
    this.#open.push({ tag, start: this.#text.length, attributes });
    this.#at = end + 1;
  }

  #checkNesting(tag: string) {
    const parents = this.#open.map((open) => open.tag);
    const isLanguage = tag === 'code' && parents.at(-1) === 'pre';
    if (!isLanguage && parents.some((parent) => parent === 'code' || parent === 'pre')) {
      this.#breaches.push(`<${tag}> inside code`);
    }
    if (!isLanguage && (tag === 'code' || tag === 'pre') && parents.length > 0) {
      const around = parents.filter((parent) => parent !== 'blockquote' && parent !== 'a');
      if (around.length > 0) this.#breaches.push(`<${tag}> inside <${around.join('><')}>`);
    }
    if (tag === 'blockquote' && parents.includes('blockquote')) {
      this.#breaches.push('blockquote inside blockquote');
    }
  }

  #endTag() {
    const offset = byteOffset(this.#source, this.#at);
    const end = this.#source.indexOf('>', this.#at);
    if (end === -1) throw new EntityError(`Unclosed end tag at byte offset ${offset}`);
    const tag = this.#source
      .slice(this.#at + 2, end)
      .trim()
      .toLowerCase();
    const open = this.#open.pop();
    if (open === undefined) throw new EntityError(`Unexpected end tag at byte offset ${offset}`);
    if (open.tag !== tag) {
      throw new EntityError(
        `Unmatched end tag at byte offset ${offset}, expected "</${open.tag}>", found "</${tag}>"`,
      );
    }
    this.#at = end + 1;
    this.#close(open);
  }

  #close(open: Open) {
    const length = this.#text.length - open.start;
    if (length === 0) return;
    const url = open.attributes.get('href');
    const language = open.attributes.get('class')?.replace(/^language-/, '');
    this.#entities.push({
      type: TYPES[open.tag] ?? open.tag,
      offset: open.start,
      length,
      ...(open.tag === 'a' && url !== undefined ? { url } : {}),
      ...(open.tag === 'code' && language !== undefined ? { language } : {}),
    });
  }
}

function attributesOf(text: string, tag: string, offset: number): Attributes {
  const found = new Map<string, string>();
  ATTRIBUTE.lastIndex = 0;
  let end = 0;
  for (let match = ATTRIBUTE.exec(text); match !== null; match = ATTRIBUTE.exec(text)) {
    found.set(match[1] ?? '', unescapeAttribute(match[2] ?? ''));
    end = ATTRIBUTE.lastIndex;
  }
  if (text.slice(end).trim() !== '') {
    throw new EntityError(
      `Unexpected end of name token in the tag "${tag}" at byte offset ${offset}`,
    );
  }
  if (tag === 'span' && found.get('class') !== 'tg-spoiler') {
    throw new EntityError(`Tag "span" must have class "tg-spoiler" at byte offset ${offset}`);
  }
  return found;
}

const unescapeAttribute = (value: string) =>
  value.replace(/&(lt|gt|amp|quot);/g, (_, name: string) => NAMED[name] ?? '');

function decoded(decimal?: string, hex?: string, name?: string): string | undefined {
  if (name !== undefined) return NAMED[name.toLowerCase()];
  const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal);
  return code > 0 && code <= 0x10_ffff ? String.fromCodePoint(code) : undefined;
}

const byteOffset = (source: string, at: number) => Buffer.byteLength(source.slice(0, at));

/** Telegram drops white space at both ends of a message; in front only before the first entity. */
function trimmed(raw: string, entities: readonly Entity[], breaches: readonly string[]) {
  const firstEntity = Math.min(raw.length, ...entities.map(({ offset }) => offset));
  const shift = Math.min(firstEntity, raw.length - raw.trimStart().length);
  const text = raw.slice(shift).trimEnd();
  const moved = entities.map((entity) => {
    const offset = entity.offset - shift;
    const end = Math.min(text.length, offset + entity.length);
    return { ...entity, offset, length: end - offset };
  });
  const kept = moved.filter((entity) => entity.length > 0);
  return { ok: true as const, text, entities: kept, breaches };
}

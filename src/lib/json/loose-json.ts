// JSON as models write it: unescaped quotes and line breaks inside strings, trailing commas,
// Python's constants, keys without quotes, a missing last brace, text around it. Strict JSON is
// parsed strictly; nothing is guessed inside a text that was cut off.

import { parseJson } from './json.ts';

type JsonEnd = 'ended' | 'cut';

/**
 * The value, or undefined if the text is invalid. `cut`: what is missing at its end stays missing.
 */
export function looseJson(text: string, end: JsonEnd = 'ended'): unknown {
  return parsed(text) ?? parsed(strictForm(text, end) ?? '');
}

const parsed = (text: string) => parseJson(text) ?? undefined;

const CONSTANTS: Readonly<Record<string, string>> = { True: 'true', False: 'false', None: 'null' };
const CLOSERS: Readonly<Record<string, string>> = { '{': '}', '[': ']' };
/** What may follow the quote that ends a string; a comma only before another key or value. */
const BEHIND_STRING = /\s*(?:[:}\]]|$|,\s*(?:["{[\-\d}\]]|(?:true|false|null|True|False|None)\b))/y;

/** Undefined if it ends inside a string, or was cut before its end. */
function strictForm(text: string, end: JsonEnd): string | undefined {
  const open: string[] = [];
  let out = '';
  /** With the following spaces; dropped before a closing bracket. */
  let comma = '';
  for (let at = 0; at < text.length; ) {
    const token = tokenAt(text, at);
    if (token === undefined) return undefined;
    const { json } = token;
    at = token.end;
    if (json === ',' || (comma !== '' && /^\s$/.test(json))) {
      comma += json;
      continue;
    }
    if (json in CLOSERS) open.push(CLOSERS[json] ?? '');
    const isCloser = json === '}' || json === ']';
    if (isCloser && open.pop() !== json) return undefined;
    out += isCloser ? json : comma + json;
    comma = '';
  }
  if (open.length > 0 && end === 'cut') return undefined;
  return out + open.reverse().join('');
}

/** A whole string, a constant or a single character. */
function tokenAt(text: string, at: number) {
  if (text.charAt(at) === '"') return stringAt(text, at);
  const word = /[A-Z][a-z]+/y;
  word.lastIndex = at;
  const constant = CONSTANTS[word.exec(text)?.[0] ?? ''];
  return constant === undefined
    ? { json: text.charAt(at), end: at + 1 }
    : { json: constant, end: word.lastIndex };
}

/** The string whose quote is at `start`, as strict JSON. */
function stringAt(text: string, start: number) {
  let json = '"';
  for (let at = start + 1; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === '"') {
      BEHIND_STRING.lastIndex = at + 1;
      if (BEHIND_STRING.test(text)) return { json: `${json}"`, end: at + 1 };
      json += '\\"';
    } else if (char === '\\') {
      const known = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;
      known.lastIndex = at;
      const written = known.exec(text)?.[0];
      json += written ?? '\\\\';
      at += (written?.length ?? 1) - 1;
    } else {
      json += char < ' ' ? JSON.stringify(char).slice(1, -1) : char;
    }
  }
  return undefined;
}

const THOUGHT = /<think(?:ing)?>[\s\S]*?(?:<\/think(?:ing)?>|$)/gi;

/** A model's text without its thinking. */
export const withoutThoughts = (text: string) => text.replace(THOUGHT, ' ');

/** Loose JSON that may also have keys without quotes and strings in single quotes. */
export const lenientJson = (json: string): unknown => looseJson(json) ?? readRelaxedJson(json);

/** Everything between matching braces, outermost first. */
export function objectsIn(text: string): readonly string[] {
  const found: string[] = [];
  let [depth, start, inString] = [0, 0, false];
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (inString && char === '\\') at += 1;
    else if (char === '"' && depth > 0) inString = !inString;
    else if (inString) continue;
    else if (char === '{') {
      if (depth === 0) start = at;
      depth += 1;
    } else if (char === '}' && depth > 0) {
      depth -= 1;
      if (depth === 0) found.push(text.slice(start, at + 1));
    }
  }
  return found;
}

// Values as people and models write them by hand: JSON with comments, trailing commas, keys without
// quotes and single quotes, and Python literals. What must be JSON is parsed elsewhere, strictly.

const MAX_CHARS = 1_000_000;
const REFUSED_KEYS = ['__proto__', 'constructor', 'prototype'];

/** The differences between the forms; the patterns are sticky. */
export type LiteralForm = {
  /** What may occur between two tokens. */
  readonly blank: RegExp;
  /** A whole string with its quotes. */
  readonly string: RegExp;
  /** A key without quotes; absent: each key has quotes. */
  readonly key?: RegExp;
  readonly word: RegExp;
  /** Lists may also be in parentheses. */
  readonly hasTuples?: true;
  readonly maxDepth: number;
  textOf(quoted: string): string;
  /** @throws Unreadable */
  valueOf(word: string): unknown;
};

export class Unreadable extends Error {
  override readonly name = 'Unreadable';
}

export class LiteralReader {
  readonly #text: string;
  readonly #form: LiteralForm;
  #at = 0;
  #depth = 0;

  constructor(text: string, form: LiteralForm) {
    this.#text = text;
    this.#form = form;
  }

  /** @throws Unreadable, as every other method */
  value(): unknown {
    this.take(this.#form.blank);
    const sign = this.#text[this.#at];
    if (sign === '{') return this.#object();
    if (sign === '[') return this.items('[', ']', () => this.value());
    if (sign === '(' && this.#form.hasTuples) return this.items('(', ')', () => this.value());
    const quoted = this.take(this.#form.string);
    if (quoted !== '') return this.#form.textOf(quoted);
    return this.#form.valueOf(this.take(this.#form.word));
  }

  /** The items between the brackets; a trailing comma is permitted. */
  items<Item>(open: string, close: string, item: () => Item): Item[] {
    this.#depth += 1;
    if (this.#depth > this.#form.maxDepth) throw new Unreadable('nested too deeply');
    const items: Item[] = [];
    this.expect(open);
    while (!this.#skip(close)) {
      items.push(item());
      if (this.#skip(close)) break;
      this.expect(',');
    }
    this.#depth -= 1;
    return items;
  }

  get isAtEnd(): boolean {
    this.take(this.#form.blank);
    return this.#at >= this.#text.length;
  }

  expect(sign: string): void {
    if (!this.#skip(sign)) throw new Unreadable(`no ${sign}`);
  }

  /** Empty if something else is at this place. */
  take(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? '';
    this.#at += found.length;
    return found;
  }

  #object(): unknown {
    const entries = this.items('{', '}', () => {
      const quoted = this.take(this.#form.string);
      const key = quoted === '' ? this.#bareKey() : this.#form.textOf(quoted);
      this.expect(':');
      return [key, this.value()] as const;
    });
    return Object.fromEntries(entries.filter(([key]) => !REFUSED_KEYS.includes(key)));
  }

  #bareKey(): string {
    const key = this.#form.key === undefined ? '' : this.take(this.#form.key);
    if (key === '') throw new Unreadable('no key');
    return key;
  }

  #skip(sign: string): boolean {
    this.take(this.#form.blank);
    if (this.#text[this.#at] !== sign) return false;
    this.#at += 1;
    this.take(this.#form.blank);
    return true;
  }
}

/** Undefined if it cannot be read. */
export function readable<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Unreadable) return undefined;
    throw error;
  }
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' };

const RELAXED_JSON: LiteralForm = {
  blank: /(?:\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y,
  string: /"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*'/y,
  key: /[\w$+.-]+/y,
  word: /[\w$+.-]+/y,
  maxDepth: 32,
  textOf: (quoted) =>
    quoted
      .slice(1, -1)
      .replace(/\\(?:u([0-9a-fA-F]{4})|\r\n|([\s\S]))/g, (_whole, hex?: string, sign?: string) => {
        if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
        return sign === undefined || sign === '\n' ? '' : (ESCAPES[sign] ?? sign);
      }),
  valueOf(word) {
    if (word === 'true' || word === 'false') return word === 'true';
    if (word === 'null') return null;
    const value = Number(word);
    if (word === '' || !Number.isFinite(value)) throw new Unreadable('no value');
    return value;
  },
};

/** Undefined if the text cannot be read, or is longer than 1 MB. */
export function readRelaxedJson(text: string): unknown {
  if (text.length > MAX_CHARS) return undefined;
  const reader = new LiteralReader(text.replace(/^\uFEFF/, ''), RELAXED_JSON);
  return readable(() => {
    const value = reader.value();
    if (!reader.isAtEnd) throw new Unreadable('text after the end');
    return value;
  });
}

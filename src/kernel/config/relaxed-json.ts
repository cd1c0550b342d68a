// JSON as people write it by hand: comments, commas at the end, keys without quotes, single quotes.
// For reading the configuration of other programs; our own is read strictly.

import type { JsonObject, JsonValue } from './json.ts';

const MAX_DEPTH = 32;
const MAX_CHARS = 1_000_000;
const REFUSED_KEYS = ['__proto__', 'constructor', 'prototype'];
const BLANK = /(?:\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y;
const TEXT = /"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*'/y;
const WORD = /[\w$+.-]+/y;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' };

/** Undefined where the text cannot be read, or is longer than 1 MB. */
export function readRelaxedJson(text: string): JsonValue | undefined {
  if (text.length > MAX_CHARS) return undefined;
  const reader = new RelaxedReader(text.replace(/^\uFEFF/, ''));
  try {
    return reader.whole();
  } catch (error) {
    if (error instanceof Unreadable) return undefined;
    throw error;
  }
}

class Unreadable extends Error {
  override readonly name = 'Unreadable';
}

class RelaxedReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): JsonValue {
    const value = this.#value(0);
    this.#take(BLANK);
    if (this.#at < this.#text.length) throw new Unreadable('text after the end');
    return value;
  }

  #value(depth: number): JsonValue {
    if (depth > MAX_DEPTH) throw new Unreadable('nested too deeply');
    this.#take(BLANK);
    if (this.#skip('{')) return this.#object(depth);
    if (this.#skip('[')) return this.#array(depth);
    const text = this.#take(TEXT);
    return text === '' ? scalarOf(this.#take(WORD)) : textOf(text);
  }

  #object(depth: number): JsonObject {
    const entries: [string, JsonValue][] = [];
    while (!this.#ends('}')) {
      const quoted = this.#take(TEXT);
      const word = quoted === '' ? this.#take(WORD) : quoted;
      this.#take(BLANK);
      if (word === '' || !this.#skip(':')) throw new Unreadable('no key');
      const key = quoted === '' ? word : textOf(quoted);
      const value = this.#value(depth + 1);
      if (!REFUSED_KEYS.includes(key)) entries.push([key, value]);
      this.#comma('}');
    }
    return Object.fromEntries(entries);
  }

  #array(depth: number): readonly JsonValue[] {
    const items: JsonValue[] = [];
    while (!this.#ends(']')) {
      items.push(this.#value(depth + 1));
      this.#comma(']');
    }
    return items;
  }

  #ends(bracket: string): boolean {
    this.#take(BLANK);
    return this.#skip(bracket);
  }

  /** Between two members there is one; before the end there may be one. */
  #comma(bracket: string): void {
    this.#take(BLANK);
    if (!this.#skip(',') && this.#text[this.#at] !== bracket) throw new Unreadable('no comma');
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? '';
    this.#at += found.length;
    return found;
  }

  #skip(sign: string): boolean {
    if (this.#text[this.#at] !== sign) return false;
    this.#at += 1;
    return true;
  }
}

function textOf(quoted: string): string {
  return quoted
    .slice(1, -1)
    .replace(/\\(?:u([0-9a-fA-F]{4})|\r\n|([\s\S]))/g, (_whole, hex?: string, sign?: string) => {
      if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
      return sign === undefined || sign === '\n' ? '' : (ESCAPES[sign] ?? sign);
    });
}

function scalarOf(word: string): JsonValue {
  if (word === 'true' || word === 'false') return word === 'true';
  if (word === 'null') return null;
  const value = Number(word);
  if (word === '' || !Number.isFinite(value)) throw new Unreadable('no value');
  return value;
}

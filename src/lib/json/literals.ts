// Values as people and models write them by hand: JSON with comments, commas at the end, keys without
// quotes and single quotes, and the literals of Python. What must be JSON is read elsewhere, strictly.

const MAX_CHARS = 1_000_000;
const REFUSED_KEYS = ['__proto__', 'constructor', 'prototype'];

/** Where the forms differ; the patterns are sticky. */
export type LiteralForm = {
  /** What may stand between two signs. */
  readonly blank: RegExp;
  /** A whole string with its quotes. */
  readonly string: RegExp;
  /** A key without quotes; left out: each key has quotes. */
  readonly key?: RegExp;
  readonly word: RegExp;
  /** Lists may also stand in parentheses. */
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

  /** What stands between the brackets; a comma may stand behind the last one. */
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

  /** Empty where something else stands there. */
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

/** Undefined where it cannot be read. */
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

/** Undefined where the text cannot be read, or is longer than 1 MB. */
export function readRelaxedJson(text: string): unknown {
  if (text.length > MAX_CHARS) return undefined;
  const reader = new LiteralReader(text.replace(/^\uFEFF/, ''), RELAXED_JSON);
  return readable(() => {
    const value = reader.value();
    if (!reader.isAtEnd) throw new Unreadable('text after the end');
    return value;
  });
}

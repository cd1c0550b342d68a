// Calls written as Python: `[f(x=1), g(y="a")]` or `tool.call(x=1)`. Values are read, never run.

import type { SpokenCall } from './protocol.ts';
import type { Calls } from './written-calls.ts';

/** `f(x=1)` once or several times, with or without the brackets of a list. */
export function pythonCalls(body: string): Calls {
  const text = body.trim();
  const listed = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text;
  const reader = new PythonReader(listed);
  try {
    return reader.calls();
  } catch (error) {
    if (error instanceof NotPython) return undefined;
    throw error;
  }
}

class NotPython extends Error {
  override readonly name = 'NotPython';
}

const CONSTANTS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['True', true],
  ['true', true],
  ['False', false],
  ['false', false],
  ['None', null],
  ['null', null],
]);
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\n': '' };
const MAX_DEPTH = 50;

class PythonReader {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  calls(): Calls {
    const calls: SpokenCall[] = [];
    while (!this.#isAtEnd()) {
      const name = this.#expect(/[A-Za-z_][\w.-]*/y).replace(/\.call$/, '');
      calls.push({ name, args: Object.fromEntries(this.#items('(', ')', () => this.#named())) });
      if (!this.#isAtEnd()) this.#expect(/[,;\s]+/y);
    }
    return calls.length === 0 ? undefined : calls;
  }

  #named(): readonly [string, unknown] {
    const name = this.#expect(/[A-Za-z_]\w*/y);
    this.#expect(/\s*=\s*/y);
    return [name, this.#value()];
  }

  #value(): unknown {
    const char = this.#text.charAt(this.#at);
    if (char === '"' || char === "'") return this.#string();
    if (char === '[') return this.#items('[', ']', () => this.#value());
    if (char === '(') return this.#items('(', ')', () => this.#value());
    if (char === '{') return Object.fromEntries(this.#items('{', '}', () => this.#pair()));
    const number = this.#take(/[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y);
    if (number !== undefined) return Number(number);
    const word = this.#expect(/[A-Za-z]+/y);
    if (!CONSTANTS.has(word)) throw new NotPython();
    return CONSTANTS.get(word);
  }

  #pair(): readonly [string, unknown] {
    const key = this.#string();
    this.#expect(/\s*:\s*/y);
    return [key, this.#value()];
  }

  #items<T>(open: string, close: string, item: () => T): T[] {
    if (++this.#depth > MAX_DEPTH) throw new NotPython();
    const items: T[] = [];
    this.#mark(open);
    while (!this.#isNext(close)) {
      items.push(item());
      if (!this.#isNext(close)) this.#mark(',');
    }
    this.#mark(close);
    this.#depth -= 1;
    return items;
  }

  #string(): string {
    const quote = this.#expect(/"""|'''|"|'/y);
    let value = '';
    while (!this.#text.startsWith(quote, this.#at)) {
      const char = this.#text.charAt(this.#at);
      if (char === '') throw new NotPython();
      const escaped = char === '\\' ? this.#text.charAt(this.#at + 1) : undefined;
      value += escaped === undefined ? char : (ESCAPES[escaped] ?? unescaped(escaped, quote));
      this.#at += escaped === undefined ? 1 : 2;
    }
    this.#at += quote.length;
    return value;
  }

  #mark(char: string): void {
    if (!this.#isNext(char)) throw new NotPython();
    this.#at += 1;
    this.#skipSpace();
  }

  #isNext(char: string): boolean {
    this.#skipSpace();
    return this.#text.charAt(this.#at) === char;
  }

  #isAtEnd(): boolean {
    this.#skipSpace();
    return this.#at >= this.#text.length;
  }

  #skipSpace(): void {
    this.#take(/\s*/y);
  }

  #expect(pattern: RegExp): string {
    const found = this.#take(pattern);
    if (found === undefined) throw new NotPython();
    return found;
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }
}

/** A backslash that escapes nothing stands for itself. */
const unescaped = (char: string, quote: string) =>
  char === '\\' || quote.startsWith(char) ? char : `\\${char}`;

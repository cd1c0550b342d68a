// Reads the configuration's JSON and remembers where everything stands, so that a problem can name
// its line. Stricter than JSON.parse: a key written twice or one that could reach into object
// prototypes is a problem.

import { ConfigError, type ConfigProblem } from '../message/errors.ts';

export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };
export type JsonObject = { readonly [key: string]: JsonValue };

/** Both count from 1. */
export type Place = { readonly line: number; readonly column: number };

export type LocatedJson = {
  readonly value: JsonValue;
  /** By dotted path; `''` is the whole file. */
  readonly places: ReadonlyMap<string, Place>;
  /** Keys written twice and keys that are refused. */
  readonly problems: readonly ConfigProblem[];
};

const MAX_DEPTH = 32;
const MAX_CHARS = 1_000_000;
const REFUSED_KEYS = new Set(['__proto__', 'constructor', 'prototype']);

const SPACES = ' \t\r\n';
const STRING = /"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** @throws ConfigError where the text is no JSON; it names line and column. */
export function readJson(text: string): LocatedJson {
  const reader = new JsonReader(text.startsWith('\uFEFF') ? text.slice(1) : text);
  return reader.read();
}

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export const joinPath = (path: string, key: string) => (path === '' ? key : `${path}.${key}`);

class JsonReader {
  readonly #text: string;
  #at = 0;
  #line = 1;
  #lineStart = 0;
  readonly #places = new Map<string, Place>();
  readonly #problems: ConfigProblem[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  read(): LocatedJson {
    if (this.#text.length > MAX_CHARS) throw this.#failure('the file is longer than 1 MB');
    const value = this.#value('', 0);
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#failure('text stands after the end');
    return { value, places: this.#places, problems: this.#problems };
  }

  #value(path: string, depth: number): JsonValue {
    if (depth > MAX_DEPTH) throw this.#failure('it is nested too deeply');
    this.#skipSpace();
    if (!this.#places.has(path)) this.#places.set(path, this.#place());
    if (this.#skip('{')) return this.#object(path, depth);
    if (this.#skip('[')) return this.#array(path, depth);
    const token = this.#take(STRING) ?? this.#take(SCALAR);
    if (token === undefined) throw this.#failure(this.#unexpected('a value'));
    return JSON.parse(token);
  }

  #object(path: string, depth: number): JsonObject {
    const entries = new Map<string, JsonValue>();
    for (;;) {
      this.#skipSpace();
      if (entries.size === 0 && this.#skip('}')) return {};
      const place = this.#place();
      const token = this.#take(STRING);
      if (token === undefined) throw this.#failure(this.#unexpected('a key in double quotes'));
      const key: string = JSON.parse(token);
      const memberPath = joinPath(path, key);
      this.#checkKey(key, memberPath, entries.has(key), place);
      this.#places.set(memberPath, place);
      this.#skipSpace();
      if (!this.#skip(':')) throw this.#failure(this.#unexpected('":"'));
      const value = this.#value(memberPath, depth + 1);
      if (!REFUSED_KEYS.has(key)) entries.set(key, value);
      this.#skipSpace();
      if (this.#skip('}')) return Object.fromEntries(entries);
      if (!this.#skip(',')) throw this.#failure(this.#unexpected('"," or "}"'));
    }
  }

  #array(path: string, depth: number): readonly JsonValue[] {
    const items: JsonValue[] = [];
    this.#skipSpace();
    if (this.#skip(']')) return items;
    for (;;) {
      items.push(this.#value(joinPath(path, String(items.length)), depth + 1));
      this.#skipSpace();
      if (this.#skip(']')) return items;
      if (!this.#skip(',')) throw this.#failure(this.#unexpected('"," or "]"'));
    }
  }

  #checkKey(key: string, path: string, twice: boolean, place: Place) {
    if (REFUSED_KEYS.has(key)) {
      const problem = 'this key is never allowed';
      this.#problems.push({ path, problem, remedy: 'Remove it.', ...place });
    } else if (twice) {
      const remedy = 'Keep one of the two.';
      this.#problems.push({ path, problem: 'the key is written twice', remedy, ...place });
    }
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text)?.[0];
    this.#at += match?.length ?? 0;
    return match;
  }

  #skip(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  /** Line ends stand only between tokens, so they are counted here. */
  #skipSpace() {
    for (let at = this.#at; SPACES.includes(this.#text[at] ?? 'end'); this.#at = at) {
      at += 1;
      if (this.#text[at - 1] !== '\n') continue;
      this.#line += 1;
      this.#lineStart = at;
    }
  }

  #place(): Place {
    return { line: this.#line, column: this.#at - this.#lineStart + 1 };
  }

  #unexpected(wanted: string): string {
    const found = this.#text.slice(this.#at, this.#at + 1);
    if (found === '"') return 'a text that does not end, or a control character or escape in it';
    return `expected ${wanted}, found ${found === '' ? 'the end of the file' : JSON.stringify(found)}`;
  }

  #failure(problem: string): ConfigError {
    const place = this.#place();
    return new ConfigError(`line ${place.line}, column ${place.column}: ${problem}`, [
      { path: '', problem: `not valid JSON: ${problem}`, remedy: 'Correct the file.', ...place },
    ]);
  }
}

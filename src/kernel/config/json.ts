// Parses the configuration's JSON with the position of every value, so that a problem can name its
// line. Stricter than JSON.parse: a duplicate key or one that could reach into object prototypes is
// a problem.

import { t } from '../../lib/texts.ts';
import { ConfigError, type ConfigProblem } from '../message/errors.ts';
import { type JsonObject, type JsonValue, joinPath } from './json-paths.ts';

export { isJsonObject, type JsonObject, type JsonValue, joinPath } from './json-paths.ts';

/** Both count from 1. */
export type Place = { readonly line: number; readonly column: number };

export type LocatedJson = {
  readonly value: JsonValue;
  /** By dotted path; `''` is the whole file. */
  readonly places: ReadonlyMap<string, Place>;
  /** Duplicate and refused keys. */
  readonly problems: readonly ConfigProblem[];
};

const MAX_DEPTH = 32;
const MAX_CHARS = 1_000_000;
const REFUSED_KEYS = new Set(['__proto__', 'constructor', 'prototype']);

const SPACES = ' \t\r\n';
const STRING = /"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** @throws ConfigError if the text is no JSON; it names line and column. */
export function readJson(text: string): LocatedJson {
  return new JsonReader(text.replace(/^\uFEFF/, '')).read();
}

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
    if (this.#text.length > MAX_CHARS) throw this.#failure(t`the file is longer than 1 MB`);
    const value = this.#value('', 0);
    this.#skipSpace();
    if (this.#at < this.#text.length)
      throw this.#failure(t`there is text after the end of the configuration`);
    return { value, places: this.#places, problems: this.#problems };
  }

  #value(path: string, depth: number): JsonValue {
    if (depth > MAX_DEPTH) throw this.#failure(t`too many nested levels`);
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
    this.#members('}', () => {
      const place = this.#place();
      const token = this.#take(STRING);
      if (token === undefined) throw this.#failure(this.#unexpected(t`a key in double quotes`));
      const key: string = JSON.parse(token);
      const memberPath = joinPath(path, key);
      const isRefused = REFUSED_KEYS.has(key);
      if (isRefused) this.#refuse(memberPath, place, 'this key is not allowed', 'Remove it.');
      else if (entries.has(key)) {
        this.#refuse(memberPath, place, 'duplicate key', 'Remove one of the two.');
      }
      this.#places.set(memberPath, place);
      this.#skipSpace();
      if (!this.#skip(':')) throw this.#failure(this.#unexpected('":"'));
      const value = this.#value(memberPath, depth + 1);
      if (!isRefused) entries.set(key, value);
    });
    return Object.fromEntries(entries);
  }

  #array(path: string, depth: number): readonly JsonValue[] {
    const items: JsonValue[] = [];
    this.#members(']', () => {
      items.push(this.#value(joinPath(path, String(items.length)), depth + 1));
    });
    return items;
  }

  #members(close: '}' | ']', readMember: () => void): void {
    this.#skipSpace();
    if (this.#skip(close)) return;
    do {
      this.#skipSpace();
      readMember();
      this.#skipSpace();
      if (this.#skip(close)) return;
    } while (this.#skip(','));
    throw this.#failure(this.#unexpected(t`"," or "${close}"`));
  }

  #refuse(path: string, place: Place, problem: string, remedy: string): void {
    this.#problems.push({ path, problem, remedy, ...place });
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

  /** Line ends occur only between tokens, so they are counted here. */
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
    if (found === '"') return t`a text without an end, or with an invalid character or escape`;
    return t`expected ${wanted}, found ${found === '' ? t`the end of the file` : JSON.stringify(found)}`;
  }

  #failure(problem: string): ConfigError {
    const place = this.#place();
    return new ConfigError(t`line ${place.line}, column ${place.column}: ${problem}`, [
      { path: '', problem: t`not valid JSON: ${problem}`, remedy: t`Correct the file.`, ...place },
    ]);
  }
}

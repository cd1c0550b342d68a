// JSON as models write it by hand: line breaks and unescaped quotes inside strings, trailing commas,
// Python's constants, a missing last brace. Strict JSON is read strictly; nothing is ever guessed
// inside a text that was cut off.

import { parseJson } from '../../lib/json/fields.ts';

export type JsonEnd = 'ended' | 'cut';

/** The value, or undefined where the text is none. `cut`: what is missing at its end stays missing. */
export function looseJson(text: string, end: JsonEnd = 'ended'): unknown {
  return parsed(text) ?? parsed(repaired(text, end) ?? '');
}

const parsed = (text: string) => parseJson(text) ?? undefined;

const CONSTANTS: Readonly<Record<string, string>> = { True: 'true', False: 'false', None: 'null' };
const CLOSERS: Readonly<Record<string, string>> = { '{': '}', '[': ']' };
/** What may stand behind the quote that ends a string; a comma only before another key or value. */
const BEHIND_STRING = /\s*(?:[:}\]]|$|,\s*(?:["{[\-\d}\]]|(?:true|false|null|True|False|None)\b))/y;

/** Undefined where it ends inside a string, or was cut before its end. */
function repaired(text: string, end: JsonEnd): string | undefined {
  const open: string[] = [];
  let out = '';
  /** With the spaces behind it; left out before a bracket that closes. */
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

/** The string whose quote stands at `start`, as strict JSON. */
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

// JSON as models write it: unescaped quotes and line breaks inside strings, trailing commas, Python's
// constants, keys without quotes, a missing last brace, other words around it. Strict JSON is read
// strictly; nothing is guessed inside a text that was cut off.

import { parseJson } from './json.ts';
import { readRelaxedJson } from './literals.ts';

type JsonEnd = 'ended' | 'cut';

/** The value, or undefined where the text is none. `cut`: what is missing at its end stays missing. */
export function looseJson(text: string, end: JsonEnd = 'ended'): unknown {
  return parsed(text) ?? parsed(strictForm(text, end) ?? '');
}

const parsed = (text: string) => parseJson(text) ?? undefined;

const CONSTANTS: Readonly<Record<string, string>> = { True: 'true', False: 'false', None: 'null' };
const CLOSERS: Readonly<Record<string, string>> = { '{': '}', '[': ']' };
/** What may stand behind the quote that ends a string; a comma only before another key or value. */
const BEHIND_STRING = /\s*(?:[:}\]]|$|,\s*(?:["{[\-\d}\]]|(?:true|false|null|True|False|None)\b))/y;

/** Undefined where it ends inside a string, or was cut before its end. */
function strictForm(text: string, end: JsonEnd): string | undefined {
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

const THOUGHT = /<think(?:ing)?>[\s\S]*?(?:<\/think(?:ing)?>|$)/gi;

/** What a model says without what it thought aloud. */
export const withoutThoughts = (text: string) => text.replace(THOUGHT, ' ');

/** As loose JSON, and with keys without quotes and strings in single quotes. */
export const lenientJson = (json: string): unknown => looseJson(json) ?? readRelaxedJson(json);

/** Everything between braces that belong together, outermost first. */
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

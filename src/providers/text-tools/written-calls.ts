// Tool calls as models write them in text: JSON objects read from a stream, XML-like tags and function
// syntax.

import { isObject } from '../../lib/json/json.ts';
import { lenientJson, looseJson } from '../../lib/json/loose-json.ts';
import { readSaid, type SpokenCall } from './protocol.ts';

type ObjectStep = {
  /** `not`: it is no JSON; `whole`: its last bracket was this character. */
  readonly state: 'open' | 'whole' | 'not';
  /** Of the answer to the person, newly written. */
  readonly said: string;
};

const OPEN: ObjectStep = { state: 'open', said: '' };
const NOT: ObjectStep = { state: 'not', said: '' };
const SPACE = /\s/;
const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
};

export class ObjectReader {
  #raw = '';
  #depth = 0;
  #root = '';
  /** `closing`: behind a quote that ends the string, unless what follows says otherwise. */
  #string: 'none' | 'inside' | 'escape' | 'closing' = 'none';
  #escape = '';
  #spaces = '';
  #text = '';
  #isKey = false;
  #key = '';
  #word = '';
  #isDone = false;
  #pair = '';
  #firstKey: string | undefined;

  get raw(): string {
    return this.#raw;
  }

  /** Of the object, or of the first one in a list. */
  get firstKey(): string | undefined {
    return this.#firstKey;
  }

  push(char: string): ObjectStep {
    this.#raw += char;
    if (this.#string === 'closing' && ',}]:'.includes(char)) {
      this.#string = 'none';
      this.#close();
    }
    if (this.#string !== 'none') return { state: 'open', said: this.#inString(char) };
    return this.#outside(char);
  }

  #outside(char: string): ObjectStep {
    if (SPACE.test(char)) return OPEN;
    const isFirst = this.#firstKey === undefined && this.#depth === this.#level;
    if (this.#root === '') this.#root = char;
    else if (isFirst && char !== '"' && char !== '}') return NOT;
    else if (this.#root === '[' && this.#depth === 1 && this.#firstKey === undefined) {
      if (char !== '{') return NOT;
    }
    if (char === '"') this.#begin();
    else if (char === '{' || char === '[') this.#depth += 1;
    else if (char === '}' || char === ']') this.#depth -= 1;
    if (this.#depth === 0) return { state: 'whole', said: '' };
    this.#follow(char);
    return OPEN;
  }

  get #level(): number {
    return this.#root === '[' ? 2 : 1;
  }

  /** Keys and values of the outermost object. */
  #follow(char: string): void {
    if (this.#depth !== this.#level) return;
    if (char === '{' || char === ',') {
      if (this.#key === 'done') this.#isDone = this.#word === 'true';
      this.#isKey = true;
      this.#word = '';
    } else if (char === ':') {
      this.#isKey = false;
    } else if (char !== '"' && !this.#isKey) {
      this.#word += char;
    }
  }

  #begin(): void {
    this.#string = 'inside';
    this.#text = '';
  }

  #inString(char: string): string {
    if (this.#string === 'escape') return this.#escaped(char);
    if (this.#string === 'closing') return this.#behindQuote(char);
    if (char === '\\') {
      this.#string = 'escape';
      this.#escape = '';
      return '';
    }
    if (char !== '"') return this.#take(char);
    this.#string = 'closing';
    this.#spaces = '';
    return '';
  }

  #escaped(char: string): string {
    this.#escape += char;
    if (this.#escape[0] === 'u' && this.#escape.length < 5 && /^u[\da-f]*$/i.test(this.#escape)) {
      return '';
    }
    this.#string = 'inside';
    const written = this.#escape;
    if (/^u[\da-f]{4}$/i.test(written)) {
      return this.#take(String.fromCharCode(Number.parseInt(written.slice(1), 16)));
    }
    if (written.length > 1) return this.#take(`\\${written}`);
    if ('"\\/'.includes(written)) return this.#take(written);
    return this.#take(SHORT_ESCAPES[written] ?? `\\${written}`);
  }

  #behindQuote(char: string): string {
    if (SPACE.test(char)) {
      this.#spaces += char;
      return '';
    }
    this.#string = 'inside';
    return this.#take(`"${this.#spaces}`) + this.#inString(char);
  }

  #close(): void {
    if (this.#depth !== this.#level || !this.#isKey) return;
    this.#key = this.#text;
    this.#firstKey ??= this.#text;
  }

  #take(text: string): string {
    if (!this.#isLive) {
      if (this.#isKey) this.#text += text;
      return '';
    }
    return this.#wholePairs(text);
  }

  /** Half of a surrogate pair waits for the other half. */
  #wholePairs(text: string): string {
    const joined = this.#pair + text;
    const isHalf = /[\uD800-\uDBFF]$/.test(joined);
    this.#pair = isHalf ? joined.slice(-1) : '';
    return (isHalf ? joined.slice(0, -1) : joined).toWellFormed();
  }

  get #isLive(): boolean {
    const isAnswer = this.#isDone && this.#key === 'response' && !this.#isKey;
    return this.#root === '{' && this.#depth === 1 && isAnswer;
  }
}

// Calls in the forms that models were trained to write them: JSON one after the other, XML tags of
// parameters, Python. Each reader takes a body and gives the calls, or undefined where it is none.

export type Calls = readonly SpokenCall[] | undefined;

/** One object or list, or several behind each other with spaces, `;` or `,` between them. */
export function jsonCalls(body: string): Calls {
  const calls: SpokenCall[] = [];
  let rest = body.trim();
  while (rest !== '') {
    const piece = firstValue(rest);
    const said = readSaid(looseJson(piece), false);
    if (said.kind !== 'calls') return undefined;
    calls.push(...said.calls);
    rest = rest.slice(piece.length).replace(/^[\s;,]+/, '');
  }
  return calls.length === 0 ? undefined : calls;
}

/** One call of the protocol in single or typographic quotes. */
export function misquotedCall(body: string): Calls {
  const straight = body.trim().replace(/[“”„]/g, '"').replace(/[‘’]/g, "'");
  const said = readSaid(lenientJson(straight), true);
  return said.kind === 'calls' ? said.calls : undefined;
}

function firstValue(text: string): string {
  const reader = new ObjectReader();
  for (const char of text) {
    if (reader.push(char).state !== 'open') return reader.raw;
  }
  return text;
}

/** `name>` and then `<parameter=key>value</parameter>` or JSON: the inside of `<function=…>`. */
export function functionTag(body: string): Calls {
  const [, name, inside] = /^\s*["']?([\w.-]+)["']?\s*>([\s\S]*)$/.exec(body) ?? [];
  if (name === undefined || inside === undefined) return undefined;
  if (/^\s*\{/.test(inside)) {
    const args = looseJson(inside.trim());
    return isObject(args) ? [{ name, args }] : undefined;
  }
  const written = [...inside.matchAll(PARAMETER)];
  const left = inside.replace(PARAMETER, '').trim();
  if (left !== '') return undefined;
  return [{ name, args: argumentsFrom(written.map(([, key = '', value = '']) => [key, value])) }];
}

const PARAMETER =
  /<parameter=["']?([\w.-]+)["']?>([\s\S]*?)(?:<\/parameter>|(?=<parameter=)|(?=<\/function>)|$)/g;

/** What stands in `<tool_call>`: JSON, function tags, or GLM's keys and values. */
export function toolCallTag(body: string): Calls {
  const trimmed = body.trim();
  if (/^[[{]/.test(trimmed)) return jsonCalls(trimmed);
  if (trimmed.startsWith('<function=')) return functionTags(trimmed);
  const [, name, inside = ''] = /^([\w.-]+)([\s\S]*)$/.exec(trimmed) ?? [];
  if (name === undefined) return undefined;
  const written = [...inside.matchAll(KEY_AND_VALUE)];
  if (inside.replace(KEY_AND_VALUE, '').trim() !== '') return undefined;
  return [{ name, args: argumentsFrom(written.map(([, key = '', value = '']) => [key, value])) }];
}

const KEY_AND_VALUE = /<arg_key>([^<]*)<\/arg_key>\s*<arg_value>([\s\S]*?)(?:<\/arg_value>|$)/g;

function functionTags(text: string): Calls {
  const bodies = text.split('<function=').slice(1);
  const calls = bodies.map((body) => functionTag(body.replace(/<\/function>\s*$/, '')));
  return calls.every((found) => found !== undefined) ? calls.flat() : undefined;
}

/** Text as it stands but for the line breaks beside the tags; what the tool asks for decides more. */
function argumentsFrom(written: readonly (readonly [string, string])[]) {
  return Object.fromEntries(
    written.map(([key, value]) => [key.trim(), value.replace(/^\n|\n$/g, '')]),
  );
}

/** `<｜tool▁call▁begin｜>`, then `function<｜tool▁sep｜>name` and fenced JSON, or `name<｜tool▁sep｜>` and JSON. */
export function deepseekCalls(body: string): Calls {
  const pieces = body
    .split(/<｜tool▁call▁begin｜>|<｜tool▁call▁end｜>/)
    .map((piece) => piece.trim())
    .filter((piece) => piece !== '');
  const calls = pieces.map((piece) => {
    const [, name, raw] =
      /^(?:function<｜tool▁sep｜>)?([\w.-]+)\s*(?:<｜tool▁sep｜>|\n)\s*(?:```(?:json)?\s*)?([\s\S]*?)\s*(?:```)?$/.exec(
        piece,
      ) ?? [];
    const args = looseJson(raw ?? '');
    return name !== undefined && isObject(args) ? [{ name, args }] : undefined;
  });
  return calls.length > 0 && calls.every((call) => call !== undefined) ? calls.flat() : undefined;
}

/** Behind `[TOOL_CALLS]`: a list, or `name{json}` one after the other, with marks of newer versions. */
export function mistralCalls(body: string): Calls {
  const trimmed = body.replace(/<\/s>\s*$/, '').trim();
  if (/^[[{]/.test(trimmed)) return jsonCalls(trimmed);
  const pieces = trimmed.split('[TOOL_CALLS]').flatMap(namedObjects);
  return pieces.length > 0 && pieces.every((call) => call !== undefined) ? pieces : undefined;
}

function namedObjects(text: string): readonly (SpokenCall | undefined)[] {
  const calls: (SpokenCall | undefined)[] = [];
  let rest = text.trim();
  while (rest !== '') {
    const [head, name] =
      /^([\w.-]+)\s*(?:\[CALL_ID\][\w-]*\s*)?(?:\[ARGS\]\s*)?(?=\{)/.exec(rest) ?? [];
    if (head === undefined || name === undefined) return [undefined];
    const object = firstValue(rest.slice(head.length));
    const args = looseJson(object);
    calls.push(isObject(args) ? { name, args } : undefined);
    rest = rest.slice(head.length + object.length).replace(/^[\s,;]+/, '');
  }
  return calls;
}

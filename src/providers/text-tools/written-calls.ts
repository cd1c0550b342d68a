// Tool calls as models write them in text: JSON objects read from a stream, XML-like tags and
// function syntax.

import { z } from 'zod';
import { isObject } from '../../lib/json/json.ts';
import { lenientJson, looseJson } from '../../lib/json/loose-json.ts';

type ObjectStep = {
  /** `not`: it is no JSON; `whole`: its last bracket was this character. */
  readonly state: 'open' | 'whole' | 'not';
  /** New text of the answer to the person. */
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
  /** `closing`: after a quote that ends the string, unless the next characters show otherwise. */
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

  /** Tracks keys and values of the outermost object. */
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

  /** Holds half of a surrogate pair back for the other half. */
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

// Calls in the forms that models were trained on: JSON objects in sequence, XML tags of parameters,
// Python. Each reader takes a body and returns the calls, or undefined if it has another form.

export type Calls = readonly SpokenCall[] | undefined;

/** One object or list, or several in sequence with spaces, `;` or `,` between them. */
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

/** The content of `<tool_call>`: JSON, function tags, or GLM's keys and values. */
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

/**
 * Text unchanged except for the line breaks beside the tags; the tool's schema decides its type.
 */
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

/** After `[TOOL_CALLS]`: a list, or `name{json}` in sequence, with marks of newer versions. */
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

// The meaning of a JSON value in the protocol of tool calls in text: a call, the end of the work,
// an imitated result, a failed attempt at one of these, or anything else.

export type SpokenCall = {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
};

export type Said =
  | { readonly kind: 'calls'; readonly calls: readonly SpokenCall[] }
  | { readonly kind: 'done'; readonly response: string }
  /** A result that only a tool can give. */
  | { readonly kind: 'result' }
  /** `problem` is for the model. */
  | { readonly kind: 'broken'; readonly problem: string }
  | { readonly kind: 'other' };

const OTHER: Said = { kind: 'other' };
const argsSchema = z.record(z.string(), z.unknown());
const callSchema = z.object({ tool: z.string().min(1), args: argsSchema });
const doneSchema = z.object({ done: z.literal(true), response: z.unknown() });
/** The form most models were trained on, under its several names. */
const trainedSchema = z.strictObject({
  id: z.unknown().optional(),
  type: z.unknown().optional(),
  name: z.string().min(1),
  args: argsSchema,
});

const ARGS_NAMES = ['args', 'arguments', 'parameters', 'params', 'input'];
/** Keys with which no normal answer starts; an object with them is protocol. */
export const PROTOCOL_KEYS: readonly string[] = ['tool', 'done', 'tool_result'];
export const TRAINED_KEYS: readonly string[] = ['name', 'function', 'tool_calls'];
const SUSPICIOUS_KEYS: readonly string[] = [
  ...PROTOCOL_KEYS,
  ...['tool_calls', 'tool_call', 'tool_name', 'tool_input', 'tool_code', 'function_call'],
  ...['action', 'action_input'],
];

/** Whether it is protocol, which is never shown to a person. */
export const isForTheProgram = (value: unknown): boolean =>
  Array.isArray(value)
    ? value.length > 0 && value.every(isForTheProgram)
    : isObject(value) && SUSPICIOUS_KEYS.some((key) => Object.hasOwn(value, key));

/** `isSpoken`: the model was told the protocol, or sees it in its own earlier calls. */
export function readSaid(value: unknown, isSpoken: boolean): Said {
  if (Array.isArray(value)) return readList(value, isSpoken);
  if (!isObject(value)) return OTHER;
  if (isSpoken && Object.hasOwn(value, 'tool_result')) return { kind: 'result' };
  if (isSpoken && Object.hasOwn(value, 'done')) return readDone(value);
  if (isSpoken && typeof value['tool'] === 'string') return readCall(value);
  if (Array.isArray(value['tool_calls'])) return readList(value['tool_calls'], isSpoken);
  return readTrained(value);
}

function readList(values: readonly unknown[], isSpoken: boolean): Said {
  const said = values.map((value) => readSaid(value, isSpoken));
  const broken = said.find(({ kind }) => kind === 'broken');
  if (broken !== undefined) return broken;
  const calls = said.flatMap((one) => (one.kind === 'calls' ? one.calls : []));
  const areCalls = said.length > 0 && said.every(({ kind }) => kind === 'calls');
  return areCalls ? { kind: 'calls', calls } : OTHER;
}

function readDone(value: Readonly<Record<string, unknown>>): Said {
  const done = doneSchema.safeParse(value);
  if (!done.success) return { kind: 'broken', problem: problemOf(done.error) };
  const { response } = done.data;
  if (response === undefined) return { kind: 'broken', problem: 'response: is missing' };
  const text = typeof response === 'string' ? response : JSON.stringify(response, undefined, 2);
  return { kind: 'done', response: text };
}

function readCall(value: Readonly<Record<string, unknown>>): Said {
  const call = callSchema.safeParse({ tool: value['tool'], args: argumentsOf(value) });
  if (!call.success) return { kind: 'broken', problem: problemOf(call.error) };
  return { kind: 'calls', calls: [{ name: call.data.tool, args: call.data.args }] };
}

/** `{"name":...,"arguments":...}`, also inside of `function`. */
function readTrained(value: Readonly<Record<string, unknown>>): Said {
  const { function: inner, ...outer } = value;
  const flat = isObject(inner)
    ? { ...outer, ...inner }
    : { ...outer, name: outer['name'] ?? inner };
  const args = argumentsOf(flat);
  const others = Object.entries(flat).filter(([key]) => !ARGS_NAMES.includes(key));
  const call = trainedSchema.safeParse({ ...Object.fromEntries(others), args });
  if (!call.success) return OTHER;
  return { kind: 'calls', calls: [{ name: call.data.name, args: call.data.args }] };
}

/** Some models encode the object as a string again. */
function argumentsOf(value: Readonly<Record<string, unknown>>): unknown {
  const given = ARGS_NAMES.filter((key) => Object.hasOwn(value, key)).map((key) => value[key])[0];
  return typeof given === 'string' ? (looseJson(given) ?? given) : given;
}

const problemOf = ({ issues }: z.ZodError): string =>
  issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ');

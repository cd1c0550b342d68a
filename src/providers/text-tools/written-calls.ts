// Calls in the forms that models were trained to write them: JSON one after the other, XML tags of
// parameters, Python. Each reader takes a body and gives the calls, or undefined where it is none.

import { isObject } from '../../lib/json/fields.ts';
import { repaired } from '../../lib/json/lenient-json.ts';
import { looseJson } from './loose-json.ts';
import { ObjectReader } from './object-reader.ts';
import { readSaid, type SpokenCall } from './protocol.ts';

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
  const said = readSaid(looseJson(straight) ?? repaired(straight), true);
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

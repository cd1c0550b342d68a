// Converts the JSON Schema with which a server describes tool arguments. The schema is untrusted
// content: the model gets it without hidden characters, and the validation implements only keywords
// of bounded cost: no patterns, no references, shallow alternatives. The server validates the rest.

import { z } from 'zod';
import { neutralLines } from '../../kernel/message/untrusted.ts';

type ForeignSchema = {
  /** The schema for the model. */
  readonly shown: Readonly<Record<string, unknown>>;
  readonly input: z.ZodType<Readonly<Record<string, unknown>>>;
  /** The schema is too large and is not shown. */
  readonly isLeftOut: boolean;
};

type Node = Readonly<Record<string, unknown>>;

const MAX_CHARS = 24_000;
const MAX_DEPTH = 16;
const MAX_ALTERNATIVES_DEPTH = 2;
const FORBIDDEN_KEYS = ['__proto__', 'constructor', 'prototype'];
const ALTERNATIVES = ['anyOf', 'oneOf', 'allOf'];
/** The validated keywords; annotations and costly keywords are left out. */
const CHECKED = [
  ...['type', 'properties', 'required', 'items', 'enum', 'const', 'additionalProperties'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'minLength', 'maxLength'],
  ...['minItems', 'maxItems', 'nullable', ...ALTERNATIVES],
];
const ANYTHING = { type: 'object' } as const;

export function remoteSchema(schema: unknown, redact: (text: string) => string): ForeignSchema {
  const cleaned = clean(schema, redact, 0);
  const isObject = isNode(cleaned) && cleaned['type'] === 'object';
  if (!isObject || JSON.stringify(cleaned).length > MAX_CHARS) {
    return { shown: ANYTHING, input: z.looseObject({}), isLeftOut: isObject };
  }
  const { $schema: _, ...shown } = cleaned;
  return { shown, input: checkOf(shown), isLeftOut: false };
}

function checkOf(schema: Node): ForeignSchema['input'] {
  try {
    const check = z.fromJSONSchema(checkable(schema, 0) as Parameters<typeof z.fromJSONSchema>[0]);
    return z.looseObject({}).pipe(check as z.ZodType<Node, Node>);
  } catch {
    return z.looseObject({});
  }
}

/** A copy without hidden characters, secrets and keys that reach prototypes. */
function clean(value: unknown, redact: (text: string) => string, depth: number): unknown {
  if (depth > MAX_DEPTH) return undefined;
  if (typeof value === 'string') return redact(neutralLines(value).join('\n'));
  if (Array.isArray(value)) return value.map((item) => clean(item, redact, depth + 1));
  if (!isNode(value)) return value;
  const kept = Object.entries(value).filter(([key]) => !FORBIDDEN_KEYS.includes(key));
  return Object.fromEntries(
    kept.map(([key, inner]) => [
      redact(neutralLines(key).join(' ')),
      clean(inner, redact, depth + 1),
    ]),
  );
}

function checkable(schema: unknown, alternatives: number): unknown {
  if (typeof schema === 'boolean') return schema;
  if (!isNode(schema) || '$ref' in schema || 'not' in schema) return {};
  const entries = Object.entries(schema).flatMap(([key, value]): readonly [string, unknown][] => {
    if (!CHECKED.includes(key)) return [];
    if (key === 'properties') return [[key, eachOf(value, alternatives)]];
    if (key === 'items' || key === 'additionalProperties') {
      return [[key, checkable(value, alternatives)]];
    }
    if (!ALTERNATIVES.includes(key)) return [[key, value]];
    if (!Array.isArray(value) || alternatives >= MAX_ALTERNATIVES_DEPTH) return [];
    return [[key, value.map((one) => checkable(one, alternatives + 1))]];
  });
  return Object.fromEntries(entries);
}

function eachOf(properties: unknown, alternatives: number): unknown {
  if (!isNode(properties)) return {};
  const entries = Object.entries(properties);
  return Object.fromEntries(entries.map(([key, one]) => [key, checkable(one, alternatives)]));
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

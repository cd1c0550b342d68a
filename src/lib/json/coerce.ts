// Adapts arguments that a model wrote to the tool's schema before zod checks them: other names of a
// parameter, numbers as text, lists for strings, JSON inside strings. It never invents a value, and
// keys that reach into prototypes are dropped at every depth.

import { isObject, type ReadJson, readJson } from './json.ts';

/** The part of JSON Schema that coercion uses. */
export type ShapeSchema = {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, ShapeSchema>>;
  readonly items?: ShapeSchema;
  readonly enum?: readonly unknown[];
  readonly required?: readonly string[];
};

/** Other names that models use for a parameter, by its real name. */
export type ParameterAliases = Readonly<Record<string, readonly string[]>>;

const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);
const MAX_DEPTH = 50;
const FENCED = /^```(?:json)?\s*\n([\s\S]*?)\n?```$/;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** Parses the model's argument text. An empty text means no arguments. */
export function parseArguments(text: string): ReadJson {
  const trimmed = text.trim();
  if (trimmed === '') return { kind: 'parsed', value: {} };
  return readJson(FENCED.exec(trimmed)?.[1] ?? trimmed);
}

/**
 * The arguments as an object of the schema's shape, as far as that is certain. `implied` is used if
 * nothing was given.
 */
export function coerceArguments(
  value: unknown,
  schema: ShapeSchema,
  aliases: ParameterAliases = {},
  implied: Readonly<Record<string, unknown>> = {},
): unknown {
  const unwrapped = unwrap(value, schema);
  if (!isObject(unwrapped)) return unwrapped;
  return coerceRecord({ ...implied, ...withNamesOf(unwrapped, schema, aliases) }, schema);
}

/** An object in a string or a list, or the only required value without its name. */
function unwrap(value: unknown, schema: ShapeSchema): unknown {
  if (value === null) return {};
  if (Array.isArray(value) && value.length === 1 && isObject(value[0])) return value[0];
  if (typeof value !== 'string') return value;
  const parsed = parseIf(value, isObject);
  if (parsed !== undefined) return parsed;
  const [only, ...others] = schema.required ?? [];
  return only !== undefined && others.length === 0 ? { [only]: value } : value;
}

function withNamesOf(
  given: Readonly<Record<string, unknown>>,
  schema: ShapeSchema,
  aliases: ParameterAliases,
): Readonly<Record<string, unknown>> {
  const properties = Object.keys(schema.properties ?? {});
  const isKnown = (key: string) => properties.includes(key);
  const unknown = Object.keys(given).filter((key) => !isKnown(key));
  const renamed = properties.flatMap((name) => {
    if (Object.hasOwn(given, name)) return [];
    const others = Object.hasOwn(aliases, name) ? aliases[name] : undefined;
    const alias = [name, ...(others ?? [])]
      .map((other) => unknown.find((key) => plainName(key) === plainName(other)))
      .find((key) => key !== undefined);
    return alias === undefined ? [] : [[name, given[alias]] as const];
  });
  return Object.fromEntries([...Object.entries(given), ...renamed]);
}

/** `timeZone`, `TimeZone` and `time-zone` mean `time_zone`. */
const plainName = (name: string) => name.toLowerCase().replace(/[-_]/g, '');

function coerceRecord(
  given: Readonly<Record<string, unknown>>,
  schema: ShapeSchema,
): Readonly<Record<string, unknown>> {
  const required = schema.required ?? [];
  const entries = Object.entries(given).flatMap(([key, value]) => {
    if (FORBIDDEN_KEYS.has(key)) return [];
    const properties = schema.properties ?? {};
    const wanted = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (wanted === undefined) return [[key, harmless(value)] as const];
    const isLeftOut = value === null || (value === '' && wanted.type !== 'string');
    if (isLeftOut && !required.includes(key)) return [];
    return [[key, coerceValue(value, wanted)] as const];
  });
  return Object.fromEntries(entries);
}

function coerceValue(value: unknown, schema: ShapeSchema): unknown {
  switch (schema.type) {
    case 'string':
      return toText(value, schema);
    case 'number':
    case 'integer':
      return typeof value === 'string' && NUMBER.test(value.trim()) ? Number(value) : value;
    case 'boolean':
      return toBoolean(value);
    case 'array':
      return toList(value).map((item) => coerceValue(item, schema.items ?? {}));
    case 'object': {
      const object = typeof value === 'string' ? (parseIf(value, isObject) ?? value) : value;
      return isObject(object) ? coerceRecord(object, schema) : object;
    }
    default:
      return harmless(value);
  }
}

function toText(value: unknown, schema: ShapeSchema): unknown {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) {
    const isPlain = value.every((item) => typeof item === 'string' || typeof item === 'number');
    return isPlain ? value.join('\n') : JSON.stringify(harmless(value), undefined, 2);
  }
  if (isObject(value)) return JSON.stringify(harmless(value), undefined, 2);
  if (typeof value !== 'string' || schema.enum === undefined) return value;
  const meant = value.trim().toLowerCase();
  return schema.enum.find((option) => String(option).toLowerCase() === meant) ?? value;
}

function toBoolean(value: unknown): unknown {
  const text = typeof value === 'string' ? value.trim().toLowerCase() : value;
  if (text === 'true' || text === 'yes' || text === '1' || text === 1) return true;
  if (text === 'false' || text === 'no' || text === '0' || text === 0) return false;
  return value;
}

function toList(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (typeof value !== 'string') return [value];
  return parseIf(value, Array.isArray) ?? [value];
}

function parseIf<T>(text: string, is: (value: unknown) => value is T): T | undefined {
  const parsed = /^\s*[[{]/.test(text) ? parseArguments(text) : undefined;
  return parsed?.kind === 'parsed' && is(parsed.value) ? parsed.value : undefined;
}

/** Without forbidden keys at any depth; values nested deeper than any tool requires are dropped. */
function harmless(value: unknown, depth = 0): unknown {
  if (depth > MAX_DEPTH) return undefined;
  if (Array.isArray(value)) return value.map((item) => harmless(item, depth + 1));
  if (!isObject(value)) return value;
  const kept = Object.entries(value).filter(([key]) => !FORBIDDEN_KEYS.has(key));
  return Object.fromEntries(kept.map(([key, inner]) => [key, harmless(inner, depth + 1)]));
}

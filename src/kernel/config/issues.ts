// Describes problems of a configuration: the dotted path, the value (never of a secret) and the
// nearest valid key or value.

import { z } from 'zod';
import { onFirstUse } from '../../lib/json/json.ts';
import { nearestName, shortened } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { ConfigProblem } from '../message/errors.ts';
import { type Config, configSchema } from './config.ts';
import { isJsonObject, type JsonValue, joinPath } from './json.ts';
import { ANY_NAME, isPathOf, valueAt } from './json-paths.ts';

const MAX_SHOWN_CHARS = 60;
const MAX_PROBLEMS = 3;

export function problemLine({ path, problem, remedy, line, column }: ConfigProblem): string {
  const place = line === undefined ? '' : t` (line ${line}, column ${column})`;
  return `${path === '' ? 'config.json' : path}${place}: ${problem}. ${remedy}`;
}

/** Each in one line, the first ones of many; contains no value of a secret. */
export function problemLines(problems: readonly ConfigProblem[]): readonly string[] {
  const lines = problems.slice(0, MAX_PROBLEMS).map(problemLine);
  const more = problems.length - lines.length;
  return more > 0 ? [...lines, t`and ${more} more: nanobot config validate`] : lines;
}

type Issue = z.core.$ZodIssue;

/** Unknown keys, wrong types and values out of range where the value does not match the schema. */
export function configOf(value: JsonValue): {
  readonly config?: Config;
  readonly misshapen: readonly ConfigProblem[];
} {
  // Compiling the schema for a single value takes longer than checking it.
  const result = configSchema.safeParse(value, { jitless: true });
  if (result.success) return { config: result.data, misshapen: [] };
  const keys = configKeys();
  const { issues } = result.error;
  return { misshapen: issues.flatMap((issue) => explain(issue, value, keys)) };
}

function explain(issue: Issue, value: JsonValue, keys: readonly ConfigKey[]): ConfigProblem[] {
  const path = issue.path.map(String).join('.');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => unknownKey(path, key, keys));
  }
  const key = keyOf(path, keys);
  if (issue.code === 'invalid_key') {
    const [{ message } = { message: t`Use another name` }] = issue.issues;
    return [{ path, problem: t`invalid name`, remedy: `${message}.` }];
  }
  const found = valueAt(value, path);
  if (found === undefined)
    return [{ path, problem: t`missing value`, remedy: wanted(issue, key, found) }];
  const shown =
    key?.secret === true ? `(${kindOf(found)})` : shorten(withoutLogin(JSON.stringify(found)));
  return [{ path, problem: t`invalid value ${shown}`, remedy: wanted(issue, key, found) }];
}

/** Removes the login from a URL. */
const withoutLogin = (json: string) => json.replace(/\/\/[^/@\s"]*@/g, '//');

function unknownKey(section: string, name: string, keys: readonly ConfigKey[]): ConfigProblem {
  const path = joinPath(section, name);
  const list = keys.find(
    ({ path: known, fields }) =>
      fields.length > 0 && (isItemOf(section, known) || isPathOf(known, section)),
  );
  const siblings =
    list?.fields.map((field) => joinPath(section, field)) ??
    keys
      .filter((key) => isPathOf(key.path, joinPath(section, lastOf(key.path))))
      .map((key) => joinPath(section, lastOf(key.path)));
  const near = nearestName(name, siblings.map(lastOf));
  const elsewhere = keys.filter(
    ({ path: known, type }) =>
      lastOf(known) === name && type !== 'section' && !known.includes(ANY_NAME),
  );
  const suggestion = near === undefined ? elsewhere.at(0)?.path : joinPath(section, near);
  const remedy =
    suggestion === undefined
      ? t`Remove it. Known keys: ${siblings.map(lastOf).join(', ') || t`see "nanobot config schema"`}.`
      : t`Did you mean ${suggestion}?`;
  return { path, problem: t`unknown key`, remedy };
}

/** `tools.people.0` is one of `tools.people`. */
const isItemOf = (path: string, list: string) =>
  path.startsWith(`${list}.`) && /^\d+$/.test(path.slice(list.length + 1));

function wanted(issue: Issue, key: ConfigKey | undefined, found: JsonValue | undefined): string {
  if (key?.secret === true) return SECRET_WORDS;
  if (issue.code === 'invalid_type' && issue.expected === 'array') {
    const [field] = key?.fields ?? [];
    return field === undefined
      ? t`Use a list, e.g. ["one", "two"].`
      : t`Use a list of sections, e.g. [{ "${field}": ... }].`;
  }
  const choices = key?.choices ?? [];
  if (choices.length > 0) {
    const near = typeof found === 'string' ? nearestName(found, choices) : undefined;
    const guess = near === undefined ? '' : t`Did you mean "${near}"? `;
    return t`${guess}Use one of: ${choices.map((choice) => `"${choice}"`).join(', ')}.`;
  }
  if (issue.code === 'too_small') {
    const { origin, minimum } = issue;
    return hasLength(origin) ? t`Use a length of ${minimum} or more.` : t`Use ${minimum} or more.`;
  }
  if (issue.code === 'too_big') {
    const { origin, maximum } = issue;
    return hasLength(origin) ? t`Use a length of ${maximum} or less.` : t`Use ${maximum} or less.`;
  }
  if (issue.code === 'invalid_type' && issue.expected === 'int') return t`Use a whole number.`;
  if (issue.code === 'invalid_type') return t`Use ${TYPE_WORDS[issue.expected] ?? issue.expected}.`;
  return `${issue.message}.`;
}

const hasLength = (origin: string) => origin === 'string' || origin === 'array';

const SECRET_WORDS =
  t`Use a text in double quotes, or { "env": "NAME" }, { "file": "/path" } or ` +
  t`{ "command": ["program", "argument"] }.`;

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: t`a text in double quotes`,
  number: t`a number, without quotes`,
  boolean: t`true or false, without quotes`,
  object: t`a section, e.g. { "key": "value" }`,
  record: t`a section, e.g. { "key": "value" }`,
};

/** The key of a path; an item of a list is explained by its list. */
function keyOf(path: string, keys: readonly ConfigKey[]): ConfigKey | undefined {
  const exact = keys.find((key) => isPathOf(key.path, path));
  return exact ?? keys.find((key) => key.type === 'list' && path.startsWith(`${key.path}.`));
}

function kindOf(value: JsonValue | undefined): string {
  if (Array.isArray(value)) return 'a list';
  if (isJsonObject(value)) return 'a section';
  return value === null ? 'null' : `a ${typeof value}`;
}

function shorten(text: string): string {
  return shortened(text, MAX_SHOWN_CHARS);
}

const lastOf = (path: string) => path.slice(path.lastIndexOf('.') + 1);

// What the schema knows about each key: its path, its type, whether it is a secret. Everything that
// names, masks or suggests keys uses this, so that the schema stays the only list.

export type ConfigKey = {
  /** Dotted, e.g. `channels.telegram.token`; `*` represents a name that the user chooses. */
  readonly path: string;
  readonly type: 'section' | 'text' | 'number' | 'switch' | 'list' | 'mixed';
  /** The only values of an enumerated key. */
  readonly choices: readonly string[];
  /** For a list of sections: the permitted fields of each; for a section of given names: these. */
  readonly fields: readonly string[];
  readonly secret: boolean;
  readonly description: string;
};

/** Every key of the configuration, sections before their keys. */
export function configKeys(): readonly ConfigKey[] {
  return KEYS();
}

const KEYS = onFirstUse(() => keysOf(configSchema, '').slice(1));

function keysOf(schema: unknown, path: string): readonly ConfigKey[] {
  const layers = layersOf(schema);
  const innermost = layers.at(-1);
  const meta = Object.assign({}, ...layers.map((layer) => layer.meta() ?? {}).reverse());
  const key: ConfigKey = {
    path,
    type: typeOf(innermost),
    choices: choicesOf(innermost),
    fields: fieldsOf(innermost),
    secret: meta.secret === true,
    description: typeof meta.description === 'string' ? meta.description : '',
  };
  if (innermost instanceof z.ZodRecord) {
    return [key, ...keysOf(innermost.valueType, `${path}.${ANY_NAME}`)];
  }
  if (!(innermost instanceof z.ZodObject)) return [key];
  const inside = Object.entries(innermost.shape).flatMap(([name, member]) =>
    keysOf(member, path === '' ? name : `${path}.${name}`),
  );
  return [key, ...inside];
}

/** The schema and what it wraps, outermost first. */
function layersOf(schema: unknown): readonly z.ZodType[] {
  if (!(schema instanceof z.ZodType)) return [];
  const wraps =
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodOptional;
  return wraps ? [schema, ...layersOf(schema.unwrap())] : [schema];
}

function typeOf(schema: z.ZodType | undefined): ConfigKey['type'] {
  if (schema instanceof z.ZodObject || schema instanceof z.ZodRecord) return 'section';
  if (schema instanceof z.ZodArray) return 'list';
  if (schema instanceof z.ZodBoolean) return 'switch';
  if (schema instanceof z.ZodUnion) return 'mixed';
  const numeric = schema instanceof z.ZodNumber || schema instanceof z.ZodLiteral;
  return numeric ? 'number' : 'text';
}

function fieldsOf(schema: z.ZodType | undefined): readonly string[] {
  if (schema instanceof z.ZodRecord) return choicesOf(schema.keyType);
  const item = schema instanceof z.ZodArray ? layersOf(schema.element).at(-1) : undefined;
  return item instanceof z.ZodObject ? Object.keys(item.shape) : [];
}

function choicesOf(schema: unknown): readonly string[] {
  const list = schema instanceof z.ZodArray ? schema.element : schema;
  return list instanceof z.ZodEnum ? list.options.map(String) : [];
}

// Says what is wrong with a configuration in words a person can act on: the dotted path, the value
// (never a secret's) and the nearest right key or value.

import type { z } from 'zod';
import { shortened } from '../../lib/text/cut.ts';
import { nearestName } from '../../lib/text/nearest.ts';
import type { ConfigProblem } from '../message/errors.ts';
import { configSchema } from './config.ts';
import { isJsonObject, type JsonValue, joinPath } from './json.ts';
import { ANY_NAME, isPathOf, valueAt } from './json-paths.ts';
import { type ConfigKey, configKeys } from './keys.ts';

const MAX_SHOWN_CHARS = 60;
const MAX_PROBLEMS = 3;

/** Each in one line, the first ones of many; no value of a secret is in it. */
export function problemLines(problems: readonly ConfigProblem[]): readonly string[] {
  const lines = problems
    .slice(0, MAX_PROBLEMS)
    .map(({ path, problem, remedy }) => `${path === '' ? '' : `${path}: `}${problem}. ${remedy}`);
  const more = problems.length - lines.length;
  return more > 0 ? [...lines, `and ${more} more: nanobot config validate`] : lines;
}

type Issue = z.core.$ZodIssue;

/** Unknown keys, wrong types and values out of range; empty where the schema is content. */
export function shapeProblems(value: JsonValue): readonly ConfigProblem[] {
  const result = configSchema.safeParse(value);
  if (result.success) return [];
  const keys = configKeys();
  return result.error.issues.flatMap((issue) => explain(issue, value, keys));
}

function explain(issue: Issue, value: JsonValue, keys: readonly ConfigKey[]): ConfigProblem[] {
  const path = issue.path.map(String).join('.');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => unknownKey(path, key, keys));
  }
  const key = keyOf(path, keys);
  if (issue.code === 'invalid_key') {
    const [{ message } = { message: 'Use another name' }] = issue.issues;
    return [{ path, problem: 'this name does not fit here', remedy: `${message}.` }];
  }
  const found = valueAt(value, path);
  if (found === undefined)
    return [{ path, problem: 'it is missing', remedy: wanted(issue, key, found) }];
  const shown = key?.secret === true ? kindOf(found) : shorten(withoutLogin(JSON.stringify(found)));
  return [{ path, problem: `${shown} does not fit here`, remedy: wanted(issue, key, found) }];
}

/** Of an address. */
const withoutLogin = (json: string) => json.replace(/\/\/[^/@\s"]*@/g, '//');

function unknownKey(section: string, name: string, keys: readonly ConfigKey[]): ConfigProblem {
  const path = joinPath(section, name);
  const list = keys.find((key) => key.fields.length > 0 && isItemOf(section, key.path));
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
      ? `Remove it. Known here: ${siblings.map(lastOf).join(', ') || 'see "nanobot config schema"'}.`
      : `Did you mean ${suggestion}?`;
  return { path, problem: 'unknown key', remedy };
}

/** `tools.people.0` is one of `tools.people`. */
const isItemOf = (path: string, list: string) =>
  path.startsWith(`${list}.`) && /^\d+$/.test(path.slice(list.length + 1));

function wanted(issue: Issue, key: ConfigKey | undefined, found: JsonValue | undefined): string {
  if (key?.secret === true) return SECRET_WORDS;
  const choices = key?.choices ?? [];
  if (choices.length > 0) {
    const near = typeof found === 'string' ? nearestName(found, choices) : undefined;
    const guess = near === undefined ? '' : `Did you mean "${near}"? `;
    return `${guess}Use one of: ${choices.map((choice) => `"${choice}"`).join(', ')}.`;
  }
  if (issue.code === 'too_small') return `Use ${issue.minimum} or more.`;
  if (issue.code === 'too_big') return `Use ${issue.maximum} or less.`;
  if (issue.code === 'invalid_type' && issue.expected === 'int') return 'Use a whole number.';
  if (issue.code === 'invalid_type' && issue.expected === 'array' && key !== undefined) {
    const [field] = key.fields;
    if (field !== undefined) return `Use a list of sections, like [{ "${field}": ... }].`;
  }
  if (issue.code === 'invalid_type') return `Use ${TYPE_WORDS[issue.expected] ?? issue.expected}.`;
  return `${issue.message}.`;
}

const SECRET_WORDS =
  'Use a text in double quotes, or { "env": "NAME" }, { "file": "/path" } or ' +
  '{ "command": ["program", "argument"] }.';

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'a text in double quotes',
  number: 'a number, without quotes',
  boolean: 'true or false, without quotes',
  array: 'a list, like ["one", "two"]',
  object: 'a section, like { "key": "value" }',
};

/** The key a path stands for; an item of a list is explained by its list. */
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

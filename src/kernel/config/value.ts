// One key of the configuration as a person writes it on a command line.

import { parseJson } from '../../lib/json/json.ts';
import { nearestName } from '../../lib/text/cut.ts';
import { type ConfigKey, configKeys } from './issues.ts';
import type { JsonValue } from './json.ts';
import { ANY_NAME, isPathOf } from './json-paths.ts';

type KeyLookup =
  | { readonly kind: 'found'; readonly key: ConfigKey }
  | { readonly kind: 'unknown'; readonly nearest: string | undefined };

export function findKey(path: string): KeyLookup {
  const keys = configKeys();
  const key = keys.find((candidate) => isPathOf(candidate.path, path));
  if (key !== undefined) return { kind: 'found', key: { ...key, path } };
  const paths = keys.map((key) => key.path).filter((each) => !each.includes(ANY_NAME));
  const sameName = paths.find((candidate) => candidate.endsWith(`.${path}`));
  return { kind: 'unknown', nearest: sameName ?? nearestName(path, paths) };
}

/** Parses a text as the key's type; a text that does not fit is left for validation. */
export function parseValue(key: ConfigKey, text: string): JsonValue {
  if (key.type === 'list') return parseList(text);
  if (key.type === 'mixed') return jsonOf(text) ?? text;
  // Text that only looks like a reference is the secret itself.
  if (key.secret && text.trim().startsWith('{')) return jsonOf(text) ?? text;
  if (key.type === 'number' && text.trim() !== '' && Number.isFinite(Number(text))) {
    return Number(text);
  }
  if (key.type === 'switch' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

/** Text that only looks like a list is one item of it. */
function parseList(text: string): JsonValue {
  if (text.trim().startsWith('[')) return jsonOf(text) ?? [text];
  const items = text.split(',').map((item) => item.trim());
  return items.filter((item) => item !== '');
}

const jsonOf = (text: string) => parseJson(text) as JsonValue | undefined;

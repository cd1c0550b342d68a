// Which values are secrets: masked wherever the configuration is shown, and never replaced by the
// mask itself when it is written.

import { type Config, PROVIDER_NAMES } from './config.ts';
import { isJsonObject, type JsonValue, joinPath } from './config-json.ts';
import { configKeys } from './config-keys.ts';
import { isReference } from './environment.ts';
import { valueAt } from './json-paths.ts';

export const MASK = '[redacted]';

/** What programs write in place of a secret; saved over the real one it would lock the user out. */
const MASKS = [
  /^[*•●.]{3,}$/u,
  /^[<[({_]*(?:redacted|masked|hidden|secret)[>\])}_]*$/i,
  /^.{0,8}(?:\*{3,}|•{3,}|…).{0,4}$/u,
];

export function looksLikeMask(text: string): boolean {
  return MASKS.some((mask) => mask.test(text));
}

export function secretPaths(): ReadonlySet<string> {
  return new Set(
    configKeys()
      .filter((key) => key.secret)
      .map((key) => key.path),
  );
}

/** The value with every secret masked; references to the environment stay readable. */
export function maskSecrets(value: JsonValue, path = '', secrets = secretPaths()): JsonValue {
  if (typeof value === 'string') {
    return secrets.has(path) && value !== '' && !isReference(value) ? MASK : value;
  }
  if (!isJsonObject(value)) return value;
  const masked = Object.entries(value).map(([key, member]) => [
    key,
    maskSecrets(member, joinPath(path, key), secrets),
  ]);
  return Object.fromEntries(masked);
}

/** Where secrets are written out, not referred to. */
export function literalSecrets(raw: JsonValue): readonly string[] {
  return [...secretPaths()].filter((path) => {
    const value = valueAt(raw, path);
    return (
      typeof value === 'string' && value !== '' && !isReference(value) && !isPlaceholder(value)
    );
  });
}

/** Written where a server asks for any key at all; masked, they would blank out ordinary words. */
const PLACEHOLDERS = new Set<string>([
  ...PROVIDER_NAMES.map((name) => name.toLowerCase()),
  ...['lm-studio', 'not-needed', 'no-key', 'no-key-required', 'sk-no-key-required', 'dummy'],
]);

const isPlaceholder = (value: string) => PLACEHOLDERS.has(value.toLowerCase());

/** The secrets in force, for a log that must not contain them. */
export function secretValues(config: Config): readonly string[] {
  return [...secretPaths()]
    .map((path) => path.split('.').reduce<unknown>(member, config))
    .filter((value): value is string => typeof value === 'string' && value !== '')
    .filter((value) => !isPlaceholder(value));
}

function member(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.entries(value).find(([name]) => name === key)?.[1];
}

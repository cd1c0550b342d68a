// Which values are secrets: masked wherever the configuration is shown, and never replaced by the
// mask itself when it is written.

import { z } from 'zod';
import { proxySecrets } from '../../lib/net/address-rules.ts';
import { t } from '../../lib/texts.ts';
import type { ConfigProblem } from '../message/errors.ts';
import { type Config, PROVIDER_NAMES } from './config.ts';
import { isReference } from './environment.ts';
import { configKeys } from './issues.ts';
import type { JsonObject, JsonValue } from './json.ts';
import { mapTexts, member, pathsIn, valueAt, withValue } from './json-paths.ts';

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

/** In this configuration, whether or not one is set. */
export function secretPaths(config: unknown): ReadonlySet<string> {
  return new Set(
    configKeys()
      .filter((key) => key.secret)
      .flatMap((key) => pathsIn(config, key.path)),
  );
}

/** The value with every secret masked; references to the environment stay readable. */
export function maskSecrets(value: JsonValue): JsonValue {
  const secrets = secretPaths(value);
  const parts = secretParts(value);
  return mapTexts(value, (text, path) => {
    const isHidden = secrets.has(path) && worthMasking(path, text);
    if (isHidden && !isReference(text)) return MASK;
    return parts.reduce((shown, { secret }) => masked(shown, secret), text);
  });
}

/**
 * Puts the secrets of `before` back into a changed copy of its masked form. A mask that stands elsewhere
 * than before is replaced only if a single secret of its list can be meant; another one stays.
 */
export function unmasked(changed: JsonObject, before: JsonObject): JsonValue {
  const shown = maskSecrets(before);
  return mapTexts(changed, (text, path) => {
    if (!text.includes(MASK)) return text;
    const same = valueAt(shown, path) === text ? valueAt(before, path) : undefined;
    if (typeof same === 'string') return same;
    const list = path.slice(0, Math.max(0, path.lastIndexOf('.')));
    const [written, masks] = [valueAt(before, list), valueAt(shown, list)];
    if (!Array.isArray(written) || !Array.isArray(masks)) return text;
    const meant = new Set(written.filter((_one, index) => masks[index] === text));
    const [only] = meant;
    return meant.size === 1 && typeof only === 'string' ? only : text;
  });
}

/** Where masks stand in place of secrets within texts. */
export function leftMasks(raw: JsonValue): readonly string[] {
  const paths: string[] = [];
  mapTexts(raw, (text, path) => {
    if (path.startsWith('mcpServers.') && text.includes(MASK)) paths.push(path);
    return text;
  });
  return paths;
}

const masked = (text: string, secret: string) =>
  text.replaceAll(secret, MASK).replaceAll(encodeURIComponent(secret), MASK);

/** Secrets within values that are not secret as a whole, with their paths. */
function secretParts(
  config: unknown,
): readonly { readonly path: string; readonly secret: string }[] {
  return Object.entries(member(config, 'mcpServers') ?? {}).flatMap(([name, server]) => {
    const args: unknown = member(server, 'args');
    const url: unknown = member(server, 'url');
    const words = Array.isArray(args) ? args.filter((arg) => typeof arg === 'string') : [];
    const at = (key: string) => (secret: string) => ({ path: `mcpServers.${name}.${key}`, secret });
    return [
      ...argumentSecrets(words).map(at('args')),
      ...addressSecrets(typeof url === 'string' ? url : '').map(at('url')),
    ];
  });
}

/** Secrets written out, not referred to. */
export function literalSecrets(raw: JsonValue): readonly string[] {
  const whole = [...secretPaths(raw)].filter((path) => {
    const value = valueAt(raw, path);
    if (typeof value !== 'string' || isReference(value)) return false;
    return worthHiding(path, value).length > 0;
  });
  return [...new Set([...whole, ...secretParts(raw).map(({ path }) => path)])];
}

/** Dummy keys for servers that require any key; masking them would blank out ordinary words. */
const PLACEHOLDERS = new Set<string>([
  ...PROVIDER_NAMES.map((name) => name.toLowerCase()),
  ...['lm-studio', 'not-needed', 'no-key', 'no-key-required', 'sk-no-key-required', 'dummy'],
]);

const isPlaceholder = (value: string) => PLACEHOLDERS.has(value.toLowerCase());

/** The current secrets, for a log that must not contain them. */
export function secretValues(config: Config): readonly string[] {
  const whole = [...secretPaths(config)].flatMap((path) => {
    const value = path.split('.').reduce<unknown>(member, config);
    return typeof value === 'string' ? worthHiding(path, value) : [];
  });
  return [...whole, ...secretParts(config).map(({ secret }) => secret)];
}

/** The address of a proxy without a password may be shown. */
const worthMasking = (path: string, value: string) =>
  isProxy(path) ? proxySecrets(value).length > 0 : value !== '';

const isProxy = (path: string) => path.endsWith('.proxy') && !path.startsWith('mcpServers.');

/** The parts of a value that must be hidden. */
function worthHiding(path: string, value: string): readonly string[] {
  if (value === '' || isPlaceholder(value)) return [];
  if (isProxy(path)) return proxySecrets(value);
  if (path === 'store.url' || path === 'store.poolUrl') return [value, ...passwordsIn(value)];
  return path.startsWith('mcpServers.') ? toolServerSecrets(path, value) : [value];
}

// Secrets in the settings of a tool server: keys are in its environment and headers, and as often
// among the arguments of its program or in its URL, where other programs store them too.

const NAME = /key|token|secret|pass|auth|cookie|credential/i;
const VALUE = /^(?!\/|https?:)(?=.*\d|.*[a-z].*[A-Z]|.*[A-Z].*[a-z]).{8,}$/s;
/** `--api-key=x`, `API_KEY=x`, `Authorization: Bearer x`. */
const ASSIGNED = /^-{0,2}([\w.-]+)(?:=|:\s+)(.+)$/s;
const FLAG = /^-{1,2}(?!no-)[\w-]+$/;
/** No path, no URL and no other flag. */
const GIVEN = /^(?![-./~]|https?:).{6,}$/s;
/** Random letters and digits, as in URLs that are themselves a key. */
const RANDOM = /^(?=.*\d)(?=.*[A-Za-z])[\w-]{24,}$/;

/**
 * The secret parts of a value of `env` or `headers`. They hold settings as well: words, numbers,
 * paths and addresses, which answers may contain too, are no secrets unless the name says so.
 */
export function toolServerSecrets(path: string, value: string): readonly string[] {
  const name = path.slice(path.lastIndexOf('.') + 1);
  return [...new Set([value, lastWord(value)])].filter(
    (part) => NAME.test(name) || VALUE.test(part),
  );
}

/** The secrets among the arguments: those whose flag or name says so. */
function argumentSecrets(args: readonly string[]): readonly string[] {
  return args.flatMap((arg, index) => {
    const [, name = '', value = ''] = ASSIGNED.exec(arg) ?? [];
    if (value !== '') return NAME.test(name) ? given(lastWord(value)) : [];
    const before = args[index - 1] ?? '';
    return FLAG.test(before) && NAME.test(before) ? given(lastWord(arg)) : [];
  });
}

/** The secrets in a URL: parameters with such a name, and random path segments. */
function addressSecrets(address: string): readonly string[] {
  const url = URL.parse(address);
  if (url === null) return [];
  const parameters = [...url.searchParams].flatMap(([name, value]) =>
    NAME.test(name) || RANDOM.test(value) ? given(value) : [],
  );
  return [...parameters, ...url.pathname.split('/').filter((part) => RANDOM.test(part))];
}

const given = (value: string) => (GIVEN.test(value) && !isReference(value) ? [value] : []);

/** As written, and decoded; not one that is an ordinary word. */
function passwordsIn(address: string): readonly string[] {
  const { password = '' } = URL.parse(address) ?? {};
  return [password, decodeURIComponent(password)].filter((text) => VALUE.test(text));
}

const lastWord = (value: string) => value.slice(value.lastIndexOf(' ') + 1);

// A secret that is stored outside the configuration: `{ "env": "NAME" }`, `{ "file": "/path" }`,
// `{ "command": ["program", "argument"] }`. Finds references and inserts their values;
// files/secret-sources.ts reads them.

export type FoundSecret =
  | { readonly kind: 'found'; readonly value: string }
  /** Never contains a value. */
  | { readonly kind: 'missing'; readonly problem: string; readonly remedy: string };

/** By the path of the setting. */
export type FoundSecrets = ReadonlyMap<string, FoundSecret>;

export const NO_SECRETS: FoundSecrets = new Map();

const envRef = z.strictObject({ env: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/) });
const fileRef = z.strictObject({ file: z.string().min(1) });
const commandRef = z.strictObject({ command: z.tuple([z.string().min(1)], z.string()) });

/** For editors: what may replace a secret. */
export const secretRefSchema = z.union([envRef, fileRef, commandRef]);

export type SecretRef = Readonly<z.infer<typeof secretRefSchema>>;

/** Every secret that is stored elsewhere. */
export const placedSecrets = (raw: JsonValue) =>
  [...secretPaths(raw)].flatMap((path) => {
    const ref: SecretRef | undefined = secretRefSchema.safeParse(valueAt(raw, path)).data;
    return ref === undefined ? [] : [{ path, ref }];
  });

/** Replaces the references by their values; unresolved ones stay. */
export function withSecrets(raw: JsonObject, found: FoundSecrets): JsonObject {
  return placedSecrets(raw).reduce((filled, { path }) => {
    const secret = found.get(path);
    return secret?.kind === 'found' ? withValue(filled, path, secret.value) : filled;
  }, raw);
}

export function missingSecrets(raw: JsonValue, found: FoundSecrets): readonly ConfigProblem[] {
  return placedSecrets(raw).flatMap(({ path }) => {
    const secret = found.get(path);
    if (secret?.kind === 'found') return [];
    const problem = secret?.problem ?? t`the secret was not loaded`;
    return [{ path, problem, remedy: secret?.remedy ?? t`Reload the configuration.` }];
  });
}

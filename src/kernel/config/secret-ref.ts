// A secret of the configuration that stands elsewhere: `{ "env": "NAME" }`, `{ "file": "/path" }`,
// `{ "command": ["program", "argument"] }`. Where references stand and what was found at them; who
// looks there is app/secret-sources.ts.

import { z } from 'zod';
import type { ConfigProblem } from '../message/errors.ts';
import type { JsonObject, JsonValue } from './json.ts';
import { valueAt, withValue } from './json-paths.ts';
import { secretPaths } from './secrets.ts';

export type SecretRef =
  | { readonly kind: 'env'; readonly name: string }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'command'; readonly argv: readonly [string, ...string[]] };

export type PlacedSecret = { readonly path: string; readonly ref: SecretRef };

export type FoundSecret =
  | { readonly kind: 'found'; readonly value: string }
  /** Never with a value in it. */
  | { readonly kind: 'missing'; readonly problem: string; readonly remedy: string };

/** By the path of the setting. */
export type FoundSecrets = ReadonlyMap<string, FoundSecret>;

export const NO_SECRETS: FoundSecrets = new Map();

const envRef = z.strictObject({ env: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/) });
const fileRef = z.strictObject({ file: z.string().min(1) });
const commandRef = z.strictObject({ command: z.tuple([z.string().min(1)], z.string()) });

/** For editors: what may stand in place of a secret. */
export const secretRefSchema = z.union([envRef, fileRef, commandRef]);

/** Undefined for what is none, e.g. the secret itself. */
function readSecretRef(value: JsonValue | undefined): SecretRef | undefined {
  const found = secretRefSchema.safeParse(value).data;
  if (found === undefined) return undefined;
  if ('env' in found) return { kind: 'env', name: found.env };
  if ('file' in found) return { kind: 'file', path: found.file };
  const [program, ...args] = found.command;
  return { kind: 'command', argv: [program, ...args] };
}

/** Every secret that stands elsewhere. */
export function placedSecrets(raw: JsonValue): readonly PlacedSecret[] {
  return [...secretPaths(raw)].flatMap((path) => {
    const ref = readSecretRef(valueAt(raw, path));
    return ref === undefined ? [] : [{ path, ref }];
  });
}

/** With what was found in place of the references; what was not found is left as it stands. */
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
    const problem = secret?.problem ?? 'the secret was not looked for';
    return [{ path, problem, remedy: secret?.remedy ?? 'Load the configuration again.' }];
  });
}

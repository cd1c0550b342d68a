// The environment in the configuration: `${NAME}` in any text is replaced by a variable (`$${NAME}`
// is the literal text), and a variable `NANOBOT__channels__telegram__token` sets the key of that
// path.

import { parseJson } from '../../lib/json/json.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';
import { t } from '../../lib/texts.ts';
import type { JsonObject, JsonValue } from './json.ts';
import { mapTexts, withValue } from './json-paths.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

const REFERENCE = /\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)\}/g;
/** Two underscores separate the keys of the path. */
const SETTING = /^NANOBOT__(\w+)$/;
const WHOLE_REFERENCE = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/;

/** A variable that is unset or empty counts as missing and is left as written. */
export function expandEnvironment(value: JsonValue, env: Environment) {
  const missing: { readonly path: string; readonly name: string }[] = [];
  const expanded = mapTexts(value, (text, path) =>
    text.replace(REFERENCE, (written, escaped: string, name: string) => {
      if (escaped !== '') return written.slice(1);
      const found = env[name];
      if (found !== undefined && found !== '') return found;
      missing.push({ path, name });
      return written;
    }),
  );
  return { value: expanded, missing };
}

/** Adds the keys set by variables, which override the file; lists and sections are JSON there. */
export function withVariables(value: JsonObject, env: Environment): JsonObject {
  return settingVariables(env).reduce((filled, { path, name }) => {
    const text = env[name] ?? '';
    const parsed = /^[[{]/.test(text) ? (parseJson(text) as JsonValue | undefined) : text;
    return withValue(filled, path, parsed ?? text);
  }, value);
}

/** The variables that set keys, with the paths of those. */
export function settingVariables(
  env: Environment,
): { readonly path: string; readonly name: string }[] {
  return Object.entries(env).flatMap(([name, text = '']) => {
    const path = SETTING.exec(name)?.[1]?.split('__').join('.');
    return path === undefined || text === '' ? [] : [{ path, name }];
  });
}

/** The variable that sets the key of this path, a section above it, or one below it. */
export function variableOf(path: string, env: Environment): string | undefined {
  return settingVariables(env).find(
    (one) =>
      one.path === path || path.startsWith(`${one.path}.`) || one.path.startsWith(`${path}.`),
  )?.name;
}

/** Whether the text is exactly one reference, so that showing it reveals nothing. */
export function isReference(text: string): boolean {
  return WHOLE_REFERENCE.test(text);
}

// Requirements for a gateway token: needed beyond loopback, hard to guess, and sendable by a
// browser in a header.

/** What an Authorization header can carry (RFC 9110 section 5.5, without spaces). */
const SENDABLE = /^[\x21-\x7e]+$/;
const MIN_TOKEN_CHARS = 16;

export type TokenProblem = { readonly problem: string; readonly remedy: string };

/** Undefined if the host may be served with this token. */
export function tokenProblem(host: string, token: string): TokenProblem | undefined {
  const isLoopback = isLoopbackHost(host);
  if (token === '' && isLoopback) return undefined;
  if (token.trim() === '') {
    return {
      problem: t`other machines can reach the gateway on ${host}, and the token is blank`,
      remedy: t`Set gateway.token or the environment variable NANOBOT_GATEWAY_TOKEN to a long random text, or set gateway.host to 127.0.0.1.`,
    };
  }
  if (!SENDABLE.test(token)) {
    return {
      problem: t`the token contains spaces or characters that browsers cannot send`,
      remedy: t`Use only letters, digits and punctuation.`,
    };
  }
  if (isLoopback || token.length >= MIN_TOKEN_CHARS) return undefined;
  return {
    problem: t`the token is too short and could be guessed`,
    remedy: t`Use at least ${MIN_TOKEN_CHARS} characters.`,
  };
}

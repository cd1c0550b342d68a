// `${NAME}` in any text of the configuration stands for an environment variable; `$${NAME}` is the
// literal text.

import { isJsonObject, type JsonValue, joinPath } from './config/json.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export type MissingVariable = { readonly path: string; readonly name: string };

export type Expanded = {
  readonly value: JsonValue;
  readonly missing: readonly MissingVariable[];
};

const REFERENCE = /\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)\}/g;
const WHOLE_REFERENCE = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/;

/** A variable that is unset or empty counts as missing and is left as written. */
export function expandEnvironment(value: JsonValue, env: Environment, path = ''): Expanded {
  if (typeof value === 'string') return expandText(value, env, path);
  if (Array.isArray(value)) {
    const items = value.map((item, index) =>
      expandEnvironment(item, env, joinPath(path, `${index}`)),
    );
    return {
      value: items.map((item) => item.value),
      missing: items.flatMap((item) => item.missing),
    };
  }
  if (!isJsonObject(value)) return { value, missing: [] };
  const members = Object.entries(value).map(
    ([key, member]) => [key, expandEnvironment(member, env, joinPath(path, key))] as const,
  );
  return {
    value: Object.fromEntries(members.map(([key, member]) => [key, member.value])),
    missing: members.flatMap(([, member]) => member.missing),
  };
}

/** Whether the text is exactly one reference, so that showing it gives nothing away. */
export function isReference(text: string): boolean {
  return WHOLE_REFERENCE.test(text);
}

function expandText(text: string, env: Environment, path: string): Expanded {
  const missing: MissingVariable[] = [];
  const value = text.replace(REFERENCE, (written, escaped: string, name: string) => {
    if (escaped !== '') return written.slice(1);
    const found = env[name];
    if (found !== undefined && found !== '') return found;
    missing.push({ path, name });
    return written;
  });
  return { value, missing };
}

// Reads and changes one place of a JSON value by its dotted path. Values are never changed, only
// copied. The web page uses it too, so it imports nothing.

export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };
export type JsonObject = { readonly [key: string]: JsonValue };

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export const joinPath = (path: string, key: string) => (path === '' ? key : `${path}.${key}`);

export function valueAt(value: JsonValue | undefined, path: string): JsonValue | undefined {
  if (path === '') return value;
  let current = value;
  for (const key of path.split('.')) {
    if (Array.isArray(current)) current = current[Number(key)];
    else if (isJsonObject(current) && Object.hasOwn(current, key)) current = current[key];
    else return undefined;
  }
  return current;
}

/** A copy with each text replaced by the result of `change`. */
export function mapTexts(
  value: JsonValue,
  change: (text: string, path: string) => string,
  path = '',
): JsonValue {
  if (typeof value === 'string') return change(value, path);
  const within = (member: JsonValue, key: string | number) =>
    mapTexts(member, change, joinPath(path, `${key}`));
  if (Array.isArray(value)) return value.map(within);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, within(member, key)]),
  );
}

/** In a path: any key. */
export const ANY_NAME = '*';

/** Whether the path matches the pattern. */
export function isPathOf(pattern: string, path: string): boolean {
  const wanted = pattern.split('.');
  const keys = path.split('.');
  return (
    wanted.length === keys.length &&
    wanted.every((key, index) => key === ANY_NAME || key === keys[index])
  );
}

/** The paths in the value that match a pattern; one without wildcards is itself. */
export function pathsIn(value: unknown, pattern: string): readonly string[] {
  const keys = pattern.split('.');
  const at = keys.indexOf(ANY_NAME);
  if (at < 0) return [pattern];
  const section = keys.slice(0, at).reduce<unknown>(member, value);
  if (typeof section !== 'object' || section === null) return [];
  return Object.keys(section)
    .filter((name) => name !== ANY_NAME)
    .flatMap((name) => pathsIn(value, keys.with(at, name).join('.')));
}

/** The value of a section's key; undefined if there is none. */
export function member(section: unknown, key: string): unknown {
  if (typeof section !== 'object' || section === null) return undefined;
  return Object.entries(section).find(([name]) => name === key)?.[1];
}

/** A copy with the value set; missing sections on the way are created. */
export function withValue(object: JsonObject, path: string, value: JsonValue): JsonObject {
  const [first, rest] = split(path);
  if (rest === undefined) return { ...object, [first]: value };
  const inner = Object.hasOwn(object, first) ? object[first] : undefined;
  return { ...object, [first]: withValue(isJsonObject(inner) ? inner : {}, rest, value) };
}

/** A copy without the key; a section left empty is removed too. */
export function withoutValue(object: JsonObject, path: string): JsonObject {
  const [first, rest] = split(path);
  const { [first]: inner, ...others } = object;
  if (inner === undefined) return object;
  if (rest === undefined) return others;
  if (!isJsonObject(inner)) return object;
  const smaller = withoutValue(inner, rest);
  return Object.keys(smaller).length === 0 ? others : { ...object, [first]: smaller };
}

function split(path: string): readonly [first: string, rest: string | undefined] {
  const dot = path.indexOf('.');
  return dot === -1 ? [path, undefined] : [path.slice(0, dot), path.slice(dot + 1)];
}

const isSection = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Where the two differ. Lists count as one value. */
export function changedPaths(before: unknown, after: unknown, path = ''): readonly string[] {
  if (!isSection(before) || !isSection(after)) {
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [path];
  }
  return Object.keys({ ...before, ...after })
    .filter((key) => key !== '$schema')
    .flatMap((key) => changedPaths(member(before, key), member(after, key), joinPath(path, key)));
}

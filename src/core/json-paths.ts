// Reading and changing one place of a JSON value by its dotted path. Values are never changed, only
// copied.

import { isJsonObject, type JsonObject, type JsonValue } from './config-json.ts';

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

/** A copy with the value set; sections on the way that are missing are made. */
export function withValue(object: JsonObject, path: string, value: JsonValue): JsonObject {
  const { first, rest } = split(path);
  if (rest === undefined) return { ...object, [first]: value };
  const inner = Object.hasOwn(object, first) ? object[first] : undefined;
  return { ...object, [first]: withValue(isJsonObject(inner) ? inner : {}, rest, value) };
}

/** A copy without the key; a section left empty goes too. */
export function withoutValue(object: JsonObject, path: string): JsonObject {
  const { first, rest } = split(path);
  const { [first]: inner, ...others } = object;
  if (inner === undefined) return object;
  if (rest === undefined) return others;
  if (!isJsonObject(inner)) return object;
  const smaller = withoutValue(inner, rest);
  return Object.keys(smaller).length === 0 ? others : { ...object, [first]: smaller };
}

function split(path: string): { readonly first: string; readonly rest: string | undefined } {
  const dot = path.indexOf('.');
  return dot === -1
    ? { first: path, rest: undefined }
    : { first: path.slice(0, dot), rest: path.slice(dot + 1) };
}

// The original's table of what models can do, as ours: there an object by part of the name, with some
// fields that mean nothing here.

import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';

const KEY = 'modelCapabilities';
const SIZES: readonly unknown[] = ['small', 'medium', 'large'];
const WAYS: readonly unknown[] = ['native', 'text', 'none'];

export function takeCapabilities(original: JsonObject): {
  readonly raw: JsonObject;
  readonly notes: readonly string[];
} {
  const { [KEY]: table, ...rest } = original;
  if (!isJsonObject(table ?? [])) return { raw: original, notes: [] };
  const entries = Object.entries(table as JsonObject).flatMap(([models, said]) => {
    const fields = isJsonObject(said ?? '') ? fieldsOf(said as JsonObject) : {};
    return models === '' || Object.keys(fields).length === 0 ? [] : [{ models, ...fields }];
  });
  if (entries.length === 0) return { raw: rest, notes: [] };
  return { raw: { ...rest, [KEY]: entries }, notes: [`${KEY} is a list now`] };
}

function fieldsOf(said: JsonObject): JsonObject {
  const { sizeClass, toolCalling, thinking, strictAlternation, maxReliableOutput } = said;
  const size = lower(sizeClass);
  const way = typeof toolCalling === 'boolean' ? wayOf(toolCalling) : lower(toolCalling);
  return {
    ...(SIZES.includes(size) ? { sizeClass: size as string } : {}),
    ...(WAYS.includes(way) ? { toolCalling: way as string } : {}),
    ...(typeof thinking === 'boolean' ? { thinking } : {}),
    ...(typeof strictAlternation === 'boolean' ? { strictAlternation } : {}),
    ...(Number.isInteger(maxReliableOutput) && Number(maxReliableOutput) > 0
      ? { maxReliableOutput: Number(maxReliableOutput) }
      : {}),
  };
}

const wayOf = (callsTools: boolean) => (callsTools ? 'native' : 'text');
const lower = (value: JsonValue | undefined) =>
  typeof value === 'string' ? value.toLowerCase() : undefined;

// Places in the values of a workflow, as its files name them: `input.folder`, `mails.json.0.subject`.

import { isJsonObject, type JsonObject, type JsonValue } from '../../../kernel/config/json.ts';

const PART = '[A-Za-z0-9_][A-Za-z0-9_-]*';
/** Names and numbers with dots between them. */
export const PATH = new RegExp(`^${PART}(?:\\.${PART})*$`);
/** Name of a step and of what it sets. */
export const STEP_NAME = /^[a-z][a-z0-9_]*$/;

/** Undefined where nothing stands there. */
export function valueAtPath(values: JsonObject, path: string): JsonValue | undefined {
  let value: JsonValue | undefined = values;
  for (const part of path.split('.')) {
    if (Array.isArray(value)) value = /^\d{1,6}$/.test(part) ? value[Number(part)] : undefined;
    else if (isJsonObject(value) && Object.hasOwn(value, part)) value = value[part];
    else return undefined;
  }
  return value;
}

export const rootOf = (path: string): string => path.split('.', 1).join();

// Reads fields of events and answers without believing them: a missing or misshapen one is undefined.

export type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : undefined;
}

/** The value JSON text stands for; undefined where it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value.toWellFormed() : undefined;
}

/** Lark writes times and numbers as text in most places. */
export function numberOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value behind a path of names. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((inside, name) => fieldsOf(inside)?.[name], value);
}

// Reads fields of updates without believing them: a missing or misshapen one is undefined.

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

/** Telegram's ids fit 52 bits; anything else is no id. */
export function integerOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? Number(value) : undefined;
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value.toWellFormed() : undefined;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

// Rows of JSON as they come back from the state: one that cannot be read stops nobody else's messages.

import { hash } from 'node:crypto';
import type { z } from 'zod';

/** The row's value; undefined where it is damaged, which the caller reports. */
export function storedJson<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

// Rows whose damage shows: a checksum stands before the text. What a damaged row means is decided
// by whoever reads it; a row that is absent never comes here.

/** `name` is the row's key: a value that stands under another key is damage too. */
export function seal(name: string, text: string): string {
  return `${checksum(name, text)} ${text}`;
}

/** The text, or undefined where the row is damaged. */
export function unseal(name: string, row: string): string | undefined {
  const end = row.indexOf(' ');
  const text = row.slice(end + 1);
  return end > 0 && row.slice(0, end) === checksum(name, text) ? text : undefined;
}

function checksum(name: string, text: string): string {
  return hash('sha256', `${name}\n${text}`, 'base64url');
}

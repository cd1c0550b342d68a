// Rows of JSON as they come back from the state: one that cannot be read stops nobody else's messages.

import type { z } from 'zod';

/** The row's value; undefined where it is damaged, which the caller reports. */
export function storedJson<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

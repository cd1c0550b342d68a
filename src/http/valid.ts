// Checks what a request brought against a schema.

import type { z } from 'zod';
import { Refusal } from './failure-reply.ts';

/** @throws Refusal (400) that names what is wrong. */
export function valid<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const where = issue?.path.join('.') ?? '';
  const what = issue?.message ?? 'is not valid';
  throw new Refusal(400, 'invalid_request', `${where === '' ? 'The request' : where}: ${what}`);
}

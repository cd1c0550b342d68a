// The kinds of values the configuration is made of.

import { z } from 'zod';

export const seconds = (minimum: number, maximum: number) => z.number().min(minimum).max(maximum);
export const count = (minimum: number, maximum: number) => z.int().min(minimum).max(maximum);
export const port = z.int().min(1).max(65_535);
export const secret = () => z.string().meta({ secret: true });

/** How a further account of a channel may be called. */
export const accountName = z
  .string()
  .regex(
    /^(?!default$)[a-z0-9-]{1,32}$/,
    'Name the account with lower-case letters, digits and "-", and not "default"',
  );

/** The same settings for a further account: each may be left out, at any depth, and none fills itself in. */
export function accountSection(
  fields: Readonly<Record<string, z.ZodType>>,
): z.ZodObject<Record<string, z.ZodType>> {
  const optional = Object.entries(fields).map(([key, field]) => {
    const { description } = field;
    const whole = withoutDefault(field);
    const bare = (whole instanceof z.ZodObject ? accountSection(whole.shape) : whole).optional();
    return [key, description === undefined ? bare : bare.describe(description)] as const;
  });
  return z.strictObject(Object.fromEntries(optional));
}

function withoutDefault(field: z.ZodType): z.ZodType {
  const wraps = field instanceof z.ZodDefault || field instanceof z.ZodPrefault;
  return wraps ? withoutDefault(field.unwrap() as z.ZodType) : field;
}

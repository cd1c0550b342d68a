// The kinds of values the configuration is made of, most of them with the default of a setting.

import { z } from 'zod';

export const flag = (usual: boolean) => z.boolean().default(usual);
export const text = (usual = '') => z.string().default(usual);
export const texts = () => z.array(z.string()).default([]);

export function choice<const Choice extends string>(
  choices: readonly Choice[],
  usual: NoInfer<Choice>,
) {
  return z.enum(choices).default(usual as z.core.util.NoUndefined<Choice>);
}

/** A group of settings that may be left out as a whole. */
export function section<Fields extends z.ZodRawShape>(fields: Fields) {
  const group = z.strictObject(fields);
  return group.prefault({} as z.core.util.NoUndefined<z.input<typeof group>>);
}

/** A number between both limits, and what it is where it is left out. */
export function seconds(minimum: number, maximum: number): z.ZodNumber;
export function seconds(minimum: number, maximum: number, usual: number): z.ZodDefault<z.ZodNumber>;
export function seconds(minimum: number, maximum: number, usual?: number) {
  const bounded = z.number().min(minimum).max(maximum);
  return usual === undefined ? bounded : bounded.default(usual);
}

/** A whole number, in the same way. */
export function count(minimum: number, maximum: number): z.ZodInt;
export function count(minimum: number, maximum: number, usual: number): z.ZodDefault<z.ZodInt>;
export function count(minimum: number, maximum: number, usual?: number) {
  const bounded = z.int().min(minimum).max(maximum);
  return usual === undefined ? bounded : bounded.default(usual);
}

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

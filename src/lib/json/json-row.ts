// Rows of JSON as they come from a store: what is damaged, or has another form than it should, is as if
// it were not there, and stops nothing.

import { z } from 'zod';

type RequiredKeys<T> = {
  [K in keyof T]-?: Record<never, never> extends Pick<T, K> ? never : K;
}[keyof T];

/** What is looked at of a row; further fields stay as they are. */
export type RowShape<T> = z.ZodType & { readonly row?: T };

/** Every field that a row has for sure, and of others those that whoever reads it relies on. */
type RowFields<T> = { readonly [K in RequiredKeys<T>]: z.ZodType } & {
  readonly [K in keyof T]?: z.ZodType;
};

export const rowShape = <T>(fields: RowFields<T>): RowShape<T> => z.looseObject({ ...fields });

export const listShape = <T>(shape: RowShape<T>): RowShape<readonly T[]> => z.array(shape);

/** Fields of rows. */
export const text = z.string();
export const number = z.number();
export const flag = z.boolean();
export const texts = z.array(z.string());
export const object = z.looseObject({});
export const objects = z.array(object);
/** Of several forms that say which one they are. */
export const kind = z.looseObject({ kind: z.string() });
export const place = z.looseObject({ channel: z.string(), account: z.string(), chat: z.string() });

/** Undefined where it is damaged or of another form. */
export function jsonRow<T>(json: string, shape: RowShape<T>): T | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  // The value itself: what is not looked at stays in it.
  return shape.safeParse(value).success ? (value as T) : undefined;
}

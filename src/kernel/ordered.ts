// What features contribute under names that one list of boot.ts orders.

export class OrderError extends Error {
  override readonly name = 'OrderError';
}

/**
 * @param what for the error, e.g. `turn stages`
 * @param order every name; the parts of features that are off may be missing
 * @throws OrderError for a part that the order does not name, and for two of one name
 */
export function inOrder<T extends { readonly name: string }>(
  what: string,
  order: readonly string[],
  parts: readonly T[],
): readonly T[] {
  const byName = new Map<string, T>();
  for (const part of parts) {
    if (!order.includes(part.name))
      throw new OrderError(`the order of ${what} does not name "${part.name}"`);
    if (byName.has(part.name)) throw new OrderError(`two ${what} have the name "${part.name}"`);
    byName.set(part.name, part);
  }
  return order.flatMap((name) => byName.get(name) ?? []);
}

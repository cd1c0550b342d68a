// How features find each other: services that one offers by name to those installed after it, and
// parts that they contribute under names that one list of boot.ts orders.

import { NanobotError } from './message/errors.ts';

/** The name under which one feature offers a service to those installed after it. */
export type Port<T> = { readonly name: string; readonly of?: T };

export const port = <T>(name: string): Port<T> => ({ name });

export class PortError extends NanobotError {
  override readonly name = 'PortError';
}

export interface Ports {
  /** @throws PortError if it was provided before */
  provide<T>(port: Port<T>, value: NoInfer<T>): void;
  /** @throws PortError if no feature installed before provides it */
  use<T>(port: Port<T>): T;
  /** Undefined if the feature that provides it is off. */
  useIfOn<T>(port: Port<T>): T | undefined;
}

export function createPorts(): Ports {
  const provided = new Map<string, unknown>();
  return {
    provide({ name }, value) {
      if (provided.has(name)) throw new PortError('port_taken', `"${name}" is provided twice`);
      provided.set(name, value);
    },
    use<T>({ name }: Port<T>): T {
      if (!provided.has(name))
        throw new PortError('port_missing', `no feature installed before provides "${name}"`);
      return provided.get(name) as T;
    },
    useIfOn: <T>({ name }: Port<T>) => provided.get(name) as T | undefined,
  };
}

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

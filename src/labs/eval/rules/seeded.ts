// Numbers that look random and are the same for the same seed, on every machine: for test material
// that can be made again. Never for a secret.

export interface Seeded {
  /** From 0 to below 1. */
  next(): number;
  /** A whole number from 0 to below `count`. */
  below(count: number): number;
  pick<T>(items: readonly [T, ...T[]]): T;
  /** All of them in another order. */
  shuffled<T>(items: readonly T[]): readonly T[];
}

const STEP = 0x6d2b79f5;
const RANGE = 2 ** 32;
const HASH_START = 0x811c9dc5;
const HASH_PRIME = 0x01000193;

/** `stream`: of one seed, a row of numbers for each purpose, so that one more of one changes no other. */
export function seeded(seed: number, stream = ''): Seeded {
  let state = hashed(`${seed}/${stream}`);
  // Mulberry32, public domain (T. Ettinger).
  const next = () => {
    state = (state + STEP) | 0;
    const mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    const more = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((more ^ (more >>> 14)) >>> 0) / RANGE;
  };
  const below = (count: number) => Math.floor(next() * count);
  return {
    next,
    below,
    pick: (items) => items[below(items.length)] ?? items[0],
    shuffled(items) {
      const keyed = items.map((item) => ({ item, at: next() }));
      return keyed.sort((one, other) => one.at - other.at).map(({ item }) => item);
    },
  };
}

/** FNV-1a over UTF-16 units. */
function hashed(text: string): number {
  let hash = HASH_START;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), HASH_PRIME);
  }
  return hash;
}

// A serial lane per key: tasks of one key run one after the other, tasks of different keys side by
// side. A lane that is empty costs nothing.

export interface Lanes {
  /** Runs the task when all earlier tasks of the key are over; a failure does not stop the lane. */
  run<T>(key: string, task: () => Promise<T>): Promise<T>;
  /** Lanes with a task running or waiting. */
  readonly size: number;
}

export function createLanes(): Lanes {
  const tails = new Map<string, Promise<unknown>>();
  return {
    get size() {
      return tails.size;
    },
    run(key, task) {
      const before = tails.get(key) ?? Promise.resolve();
      const result = before.then(task, task);
      const tail = result.then(ignore, ignore).then(() => {
        if (tails.get(key) === tail) tails.delete(key);
      });
      tails.set(key, tail);
      return result;
    },
  };
}

function ignore() {}

// What is read or worked out once and kept in memory.

/** Reads when first asked; a read that failed is made again by whoever asks next. */
export function readOnce<T>(read: () => Promise<T>): () => Promise<T> {
  let known: Promise<T> | undefined;
  return () => {
    known ??= read();
    const reading = known;
    reading.catch(() => {
      if (known === reading) known = undefined;
    });
    return reading;
  };
}

/** What follows from an object that is never changed: worked out again where another one is given. */
export function rememberedFor<K extends object, V>(work: (key: K) => V): (key: K) => V {
  let known: { readonly key: K; readonly value: V } | undefined;
  return (key) => {
    if (known?.key !== key) known = { key, value: work(key) };
    return known.value;
  };
}

// Maps with a bounded number of tasks at work; results keep the order of the items.

export async function mapLimited<Item, Result>(
  items: readonly Item[],
  limit: number,
  task: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results = new Map<number, Result>();
  const queue = items.entries();
  const worker = async () => {
    for (const [index, item] of queue) results.set(index, await task(item));
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return items.map((_, index) => results.get(index) as Result);
}

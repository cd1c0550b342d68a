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

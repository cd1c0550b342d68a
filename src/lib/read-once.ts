// What is read from disk once and kept in memory.

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

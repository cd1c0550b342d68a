// Waits for others only as long as the signal allows, also where they ignore it.

/** Passes the source's values on; throws the signal's reason as soon as it aborts. */
export async function* untilAborted<T>(
  source: AsyncIterable<T>,
  signal: AbortSignal,
): AsyncGenerator<T, void, void> {
  signal.throwIfAborted();
  const iterator = source[Symbol.asyncIterator]();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  let isOver = false;
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), aborted]);
      isOver = next.done === true;
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
    // Not awaited: a source that ignores the signal would hold the turn.
    if (!isOver) iterator.return?.().catch(() => undefined);
  }
}

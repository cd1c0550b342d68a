// Something others wait for: they look, and where it is not yet so, wait for the next change.

export interface Change {
  notify(): void;
  /** Resolves at the next change. @throws the signal's reason */
  next(signal: AbortSignal): Promise<void>;
}

export function createChange(): Change {
  const waiting = new Set<() => void>();
  return {
    notify() {
      for (const resume of [...waiting]) resume();
    },
    next(signal) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const onAbort = () => reject(signal.reason);
      if (signal.aborted) onAbort();
      signal.addEventListener('abort', onAbort, { once: true });
      waiting.add(resolve);
      return promise.finally(() => {
        waiting.delete(resolve);
        signal.removeEventListener('abort', onAbort);
      });
    },
  };
}

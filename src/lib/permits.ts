// A counting semaphore, first come first served. Its size may change while permits are out.

export interface Permits {
  /** Resolves with a permit; disposing gives it back. Rejects when the signal aborts first. */
  acquire(signal: AbortSignal): Promise<Disposable>;
  resize(size: number): void;
}

type Waiter = { readonly grant: () => void };

export function createPermits(initialSize: number): Permits {
  let size = initialSize;
  let used = 0;
  const waiters = new Set<Waiter>();

  function grantNext() {
    for (const waiter of waiters) {
      if (used >= size) return;
      waiters.delete(waiter);
      waiter.grant();
    }
  }

  function take(): Disposable {
    used += 1;
    let held = true;
    return {
      [Symbol.dispose]() {
        if (!held) return;
        held = false;
        used -= 1;
        grantNext();
      },
    };
  }

  return {
    async acquire(signal) {
      signal.throwIfAborted();
      if (used < size && waiters.size === 0) return take();
      return new Promise((resolve, reject) => {
        const onAbort = () => {
          waiters.delete(waiter);
          reject(signal.reason);
        };
        const waiter: Waiter = {
          grant: () => {
            signal.removeEventListener('abort', onAbort);
            resolve(take());
          },
        };
        waiters.add(waiter);
        signal.addEventListener('abort', onAbort, { once: true });
      });
    },
    resize(next) {
      size = next;
      grantNext();
    },
  };
}

// Ctrl+C and SIGTERM: the first asks for a graceful stop, the second leaves at once.

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const FORCED_EXIT_BASE = 128;
const NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;

/** Runs the work with a signal that the first Ctrl+C or SIGTERM aborts. */
export async function untilStopped<Result>(
  onFirst: () => void,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  const handle = (name: (typeof SIGNALS)[number]) => {
    if (controller.signal.aborted) process.exit(FORCED_EXIT_BASE + NUMBERS[name]);
    onFirst();
    controller.abort();
  };
  for (const name of SIGNALS) process.on(name, handle);
  try {
    return await work(controller.signal);
  } finally {
    for (const name of SIGNALS) process.off(name, handle);
  }
}

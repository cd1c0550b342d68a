// Joins callers that want the same work: who comes while it runs waits for one more run, which
// began after they asked. Many new session files then cost few syncs of their folder.

/** The returned function resolves after a run that began after the call. */
export function shareRuns(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  function start(): Promise<void> {
    next = undefined;
    const run = work().finally(() => {
      if (running === run) running = undefined;
    });
    running = run;
    return run;
  }

  return () => {
    if (running === undefined) return start();
    next ??= running.then(start, start);
    return next;
  };
}

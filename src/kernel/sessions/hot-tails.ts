// The tails of the sessions used last, bounded in number and in bytes of their files.

import type { SessionKey } from '../message/ids.ts';
import type { SessionTail } from './load-tail.ts';

export interface HotTails {
  get(key: SessionKey): SessionTail | undefined;
  /** Also after each append, so that the tail's new size counts. */
  put(key: SessionKey, tail: SessionTail): void;
  forget(key: SessionKey): void;
}

export type HotLimits = { readonly maxTails: number; readonly maxBytes: number };

type Held = { readonly tail: SessionTail; readonly bytes: number };

export function createHotTails(limits: HotLimits): HotTails {
  const held = new Map<SessionKey, Held>();
  let totalBytes = 0;

  function forget(key: SessionKey) {
    totalBytes -= held.get(key)?.bytes ?? 0;
    held.delete(key);
  }

  return {
    get: (key) => held.get(key)?.tail,
    put(key, tail) {
      forget(key);
      const bytes = tail.end?.size ?? 0;
      held.set(key, { tail, bytes });
      totalBytes += bytes;
      for (const oldest of held.keys()) {
        if (held.size <= limits.maxTails && totalBytes <= limits.maxBytes) return;
        if (oldest !== key) forget(oldest);
      }
    },
    forget,
  };
}

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

// Looks after one connection from its making on (case W12): a login that does not come about, a
// transport on which nothing comes, messages that come but reach nobody, and an offline marker that
// stays out (case W03).

import type { Clock } from '../../lib/time/clock.ts';

/** Three of the library's keep-alives, each of which the server answers. */
const SILENCE_MS = 90_000;
const LOGIN_MS = 90_000;
/** The library shows QR codes for 160 s. */
const PAIRING_MS = 180_000;
const STALL_MS = 60_000;
/** The library gives its own buffer 30 s. */
const MARKER_MS = 35_000;
const LOOK_EVERY_MS = 5000;

export type WatchdogDeps = {
  readonly clock: Clock;
  readonly isPairing: boolean;
  /** While messages wait to be taken in: milliseconds without any of them coming through. */
  stalledMs(): number | undefined;
  /** Called once, then the watch is over. */
  onTrouble(kind: 'silent' | 'stalled' | 'overdue'): void;
  onMarkerMissing(): void;
};

export interface Watchdogs extends Disposable {
  frame(): void;
  opened(): void;
}

export function startWatchdogs(deps: WatchdogDeps): Watchdogs {
  const { clock } = deps;
  const startedAt = clock.monotonic();
  const timers = new DisposableStack();
  let frameAt = startedAt;
  let isOpen = false;
  let look: Disposable;

  function troubleAt(now: number): 'silent' | 'stalled' | 'overdue' | undefined {
    const limitMs = deps.isPairing ? PAIRING_MS : LOGIN_MS;
    if (!isOpen && now - startedAt >= limitMs) return 'overdue';
    if (now - frameAt >= SILENCE_MS) return 'silent';
    return isOpen && (deps.stalledMs() ?? 0) >= STALL_MS ? 'stalled' : undefined;
  }

  function arm(): void {
    look = clock.timer(LOOK_EVERY_MS, () => {
      const trouble = troubleAt(clock.monotonic());
      if (trouble === undefined) arm();
      else deps.onTrouble(trouble);
    });
  }

  arm();
  timers.defer(() => look[Symbol.dispose]());
  return {
    frame() {
      frameAt = clock.monotonic();
    },
    opened() {
      isOpen = true;
      timers.use(clock.timer(MARKER_MS, deps.onMarkerMissing));
    },
    [Symbol.dispose]: () => timers.dispose(),
  };
}

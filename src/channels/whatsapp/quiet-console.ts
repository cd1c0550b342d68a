// libsignal prints whole session objects, private ratchet keys included, to the console. While this
// is in force its calls are dropped and counted; everybody else's pass. Restored on dispose.

const METHODS = ['debug', 'error', 'info', 'log', 'trace', 'warn'] as const;
const LIBSIGNAL = /[\\/]node_modules[\\/]libsignal[\\/]/;
/** The caller of a console method stands directly above ours. */
const FRAMES = 2;

export interface QuietConsole extends Disposable {
  /** Calls dropped so far. */
  readonly dropped: number;
}

export function quietConsole(target: Console = console): QuietConsole {
  const state = { isOn: true, dropped: 0 };
  const undo = METHODS.map((method) => {
    const original = target[method];
    const filter = (...values: unknown[]) => {
      if (state.isOn && isFromLibsignal(filter)) state.dropped += 1;
      else original.apply(target, values);
    };
    target[method] = filter;
    return () => {
      // Somebody who replaced it after us calls us still; then we only let everything pass.
      if (target[method] === filter) target[method] = original;
    };
  });
  return {
    get dropped() {
      return state.dropped;
    },
    [Symbol.dispose]() {
      state.isOn = false;
      for (const restore of undo) restore();
    },
  };
}

function isFromLibsignal(callee: (...values: unknown[]) => void): boolean {
  const limit = Error.stackTraceLimit;
  const here: { stack?: string } = {};
  Error.stackTraceLimit = FRAMES;
  Error.captureStackTrace(here, callee);
  Error.stackTraceLimit = limit;
  return LIBSIGNAL.test(here.stack ?? '');
}

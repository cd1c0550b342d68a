// A Date that stands at another time and goes on from there, so that a program and its simulators work
// on the day on which a stored home was made. As a preload (`node --import`) it takes the shift from its
// own address, because threads are given no environment.

const PARAMETER = 'shift-ms';

/** What `NODE_OPTIONS` of a child process needs. */
export const shiftOption = (ms: number) => `--import ${import.meta.url}?${PARAMETER}=${ms}`;

/** Shifts in this process; disposing takes it back. */
export function shiftDate(ms: number): Disposable {
  const real = globalThis.Date;
  const now = () => real.now() + ms;
  globalThis.Date = new Proxy(real, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new real(now()).toString(),
    get: (target, key, receiver) => (key === 'now' ? now : Reflect.get(target, key, receiver)),
  });
  return {
    [Symbol.dispose]() {
      globalThis.Date = real;
    },
  };
}

const shift = new URL(import.meta.url).searchParams.get(PARAMETER);
if (shift !== null) shiftDate(Number(shift));

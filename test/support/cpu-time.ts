// How much processor time something takes: what a test may hold code to on a machine that has much
// else to do, where time on the clock says nothing.

/** Milliseconds of processor time that this thread has had so far. */
export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

const LOOK_EVERY_MS = 10;

export type StretchWatch = {
  /** Milliseconds of processor time this thread had between two looks at most. */
  longestMs(): number;
  stop(): void;
};

/** Looks how long this thread computes without a pause. @param also done at each look */
export function watchStretches(also: () => void = () => undefined): StretchWatch {
  let last = cpuMs();
  let longest = 0;
  const look = () => {
    const now = cpuMs();
    longest = Math.max(longest, now - last);
    last = now;
    also();
  };
  const timer = setInterval(look, LOOK_EVERY_MS);
  return {
    longestMs() {
      look();
      return longest;
    },
    stop: () => clearInterval(timer),
  };
}

/** Of the cost for four times the size: 4 where it grows with the size, 16 where it grows with its square. */
export const PROPORTIONAL = 9;
/** Below it, other work of the process decides. */
const MIN_COST_MS = 20;
const TRIES = 4;

/**
 * How many times the processor time grows when the size grows fourfold, to be compared with `PROPORTIONAL`: the least
 * of several tries, because other work of the machine can only add to it.
 * @param work milliseconds of processor time for something of this size
 */
export async function growthOf(
  work: (size: number) => number | Promise<number>,
  size: number,
): Promise<number> {
  await work(size / 4);
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < TRIES && least >= PROPORTIONAL; attempt += 1) {
    const small = Math.max(MIN_COST_MS, await work(size));
    least = Math.min(least, (await work(4 * size)) / small);
  }
  return least;
}

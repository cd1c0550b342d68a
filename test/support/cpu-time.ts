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

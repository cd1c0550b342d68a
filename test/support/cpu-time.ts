// How much processor time something takes: what a test may hold code to on a machine that has much
// else to do, where time on the clock says nothing.

/** Milliseconds of processor time that this thread has had so far. */
export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

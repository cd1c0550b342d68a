// Lets a gateway in its own process live later than this test: its dates are ahead by so much. As a
// preload (`node --import`) it takes the shift from the environment.

const VARIABLE = 'NANOBOT_TEST_CLOCK_SHIFT_MS';

/** What a child process needs in its environment to live this much later. */
export const laterBy = (ms: number): Readonly<Record<string, string>> => ({
  NODE_OPTIONS: `--import ${import.meta.url}`,
  [VARIABLE]: String(ms),
});

const { [VARIABLE]: shift } = process.env;
if (shift !== undefined) {
  const { now } = Date;
  Date.now = () => now() + Number(shift);
}

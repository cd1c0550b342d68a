// Ends a test run with one plain line that any machine can read, and names what was skipped, what
// failed, and what failed in a first run of its file and not in the second.

import type { Reporter, TestCase, TestModule } from 'vitest/node';

const STATES = ['passed', 'failed', 'skipped'] as const;
/** Of a message; with the calls that a browser made. */
const MAX_LINES = 10;

export default class ClosingLine implements Reporter {
  readonly #modules = new Map<string, TestModule>();
  /** By test; what it failed with at first. */
  readonly #failed = new Map<string, string>();

  onTestRunEnd(run: readonly TestModule[], errors: readonly unknown[]): void {
    for (const module of run) this.#modules.set(module.id, module);
    const modules = [...this.#modules.values()];
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const of = (state: string) => tests.filter((test) => test.result().state === state);
    const broken = [...modules.flatMap((module) => module.errors()), ...errors];
    for (const test of of('skipped')) console.log(`skipped: ${test.fullName}`);
    // Behind the skipped ones: the end of a log is what survives.
    for (const test of of('passed')) {
      const first = this.#failed.get(nameOf(test));
      if (first !== undefined) console.log(`flaky: ${first}`);
    }
    for (const test of of('failed')) {
      const reasons = (test.result().errors ?? []).map((error) => `\n  ${briefly(error)}`);
      const text = `${nameOf(test)}${reasons.join('')}`;
      this.#failed.set(nameOf(test), text);
      console.log(`failed: ${text}`);
    }
    for (const error of broken) console.log(`failed: ${briefly(error)}`);
    const [passed, failed = 0, skipped] = STATES.map((state) => of(state).length);
    console.log(`${passed} passed, ${failed + broken.length} failed, ${skipped} skipped`);
  }
}

const nameOf = ({ fullName, module }: TestCase) => `${fullName} (${module.relativeModuleId})`;

/** Its message in brief, and where our code was when it was thrown. */
function briefly(error: unknown): string {
  const { message, stack } = Object(error);
  const place = String(stack)
    .split('\n')
    .find((line) => /^\s*at /.test(line) && !line.includes('node_modules'));
  const lines = String(message).split('\n').slice(0, MAX_LINES);
  return [...lines, place?.trim() ?? ''].filter((line) => line !== '').join('\n  ');
}

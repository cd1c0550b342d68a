// Ends a test run with one plain line that any machine can read, and names what was skipped and
// what failed.

import type { Reporter, TestModule } from 'vitest/node';

const STATES = ['passed', 'failed', 'skipped'] as const;

export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const [passed, failed, skipped] = STATES.map(
      (state) => tests.filter((test) => test.result().state === state).length,
    );
    const broken = [...modules.flatMap((module) => module.errors()), ...errors];
    for (const test of tests) {
      if (test.result().state === 'skipped') console.log(`skipped: ${test.fullName}`);
    }
    // Behind the skipped ones: the end of a log is what survives.
    for (const test of tests) {
      if (test.result().state !== 'failed') continue;
      console.log(`failed: ${test.fullName} (${test.module.relativeModuleId})`);
      for (const error of test.result().errors ?? []) console.log(`  ${briefly(error)}`);
    }
    for (const error of broken) console.log(`failed: ${briefly(error)}`);
    console.log(`${passed} passed, ${(failed ?? 0) + broken.length} failed, ${skipped} skipped`);
  }
}

/** The first line of its message, and where our code was when it was thrown. */
function briefly(error: unknown): string {
  const { message, stack } = Object(error);
  const place = String(stack)
    .split('\n')
    .find((line) => /^\s*at /.test(line) && !line.includes('node_modules'));
  return `${String(message).split('\n')[0]} ${place?.trim() ?? ''}`.trim();
}

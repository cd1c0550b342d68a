// Ends a test run with one plain line that any machine can read, and names what was skipped.

import type { Reporter, TestModule } from 'vitest/node';

const STATES = ['passed', 'failed', 'skipped'] as const;

export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const [passed, failed, skipped] = STATES.map(
      (state) => tests.filter((test) => test.result().state === state).length,
    );
    const broken = modules.filter((module) => module.errors().length > 0).length + errors.length;
    for (const test of tests) {
      if (test.result().state === 'skipped') console.log(`skipped: ${test.fullName}`);
    }
    console.log(`${passed} passed, ${(failed ?? 0) + broken} failed, ${skipped} skipped`);
  }
}

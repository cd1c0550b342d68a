// Runs the tests. A file that fails is run a second time when the others are done: a test of browsers, mail
// servers and clocks can lose a race on a busy machine. Such a test is named `flaky` at the end of the run
// and is a defect to repair. A test that counts losses and doubles has one run: one loss in a hundred runs
// is what it looks for. So have the tests of attacks, and a run in which much fails.

import { createVitest, type TestModule } from 'vitest/node';

const MAX_REPEATED = 3;
const ONE_RUN = /^test\/(?:bus|crash|hostile|sessions|store)\/|crash|\bkill|failover|recovery|disk/;

const isRepeated = (failed: readonly TestModule[]) =>
  failed.length <= MAX_REPEATED &&
  failed.every(({ relativeModuleId }) => !ONE_RUN.test(relativeModuleId));

// As `vitest run` does.
process.env['NODE_ENV'] ??= 'test';
const vitest = await createVitest({ watch: false });
try {
  const { testModules, unhandledErrors } = await vitest.start(process.argv.slice(2));
  const failed = testModules.filter((module) => !module.ok());
  if (failed.length > 0 && unhandledErrors.length === 0 && isRepeated(failed)) {
    process.exitCode = 0;
    await vitest.runTestSpecifications(failed.map((module) => module.toTestSpecification()));
  }
} finally {
  await vitest.close();
}

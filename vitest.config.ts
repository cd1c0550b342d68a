import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { campaign } from './test/support/campaign.ts';
import { COMPILE_CACHE } from './test/support/compile-cache.ts';
import { SlowestFirst } from './test/support/slowest-first.ts';

/** They run the package instead of the sources. */
const SYSTEM = 'test/system/**/*.test.ts';
/** Files that measure or change their process. All others share the workers: a process costs each file seconds. */
const ALONE = [
  'test/hostile/**/*.test.ts',
  'test/**/local-day.test.ts',
  'test/**/link-watch.test.ts',
  'test/**/bombs.test.ts',
];

/** Also of threads, which have an empty environment: to strip the types of what one loads takes longer than its work. */
const KEEP_COMPILED = `data:text/javascript,import{enableCompileCache}from'node:module';\
enableCompileCache(${JSON.stringify(COMPILE_CACHE.NODE_COMPILE_CACHE)})`;

export default defineConfig({
  resolve: {
    alias: [
      {
        find: /^fast-check$/,
        replacement: fileURLToPath(new URL('test/support/seeded-check.ts', import.meta.url)),
      },
    ],
  },
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'system',
          include: [SYSTEM],
          globalSetup: './test/support/packed.ts',
          isolate: false,
        },
      },
      { extends: true, test: { name: 'alone', include: ALONE, isolate: true } },
      {
        extends: true,
        test: {
          name: 'together',
          include: ['test/**/*.test.ts'],
          exclude: [SYSTEM, ...ALONE],
          isolate: false,
        },
      },
    ],
    reporters: ['default', './test/support/closing-line.ts'],
    pool: 'forks',
    execArgv: ['--import', KEEP_COMPILED],
    // Each starts programs and a browser of its own and waits for them: four leave a sixth of two cores idle.
    maxWorkers: 5,
    sequence: { sequencer: SlowestFirst },
    testTimeout: campaign({ short: 240_000, full: 1_800_000 }),
    hookTimeout: 240_000,
    // A wait ends when its event came; only a fault on a busy machine gets near this.
    expect: { poll: { timeout: 30_000, interval: 20 } },
    env: { ...COMPILE_CACHE, TZ: 'UTC' },
  },
});

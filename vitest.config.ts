import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { SlowestFirst } from './test/support/slowest-first.ts';

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
    include: ['test/**/*.test.ts'],
    reporters: ['default', './test/support/closing-line.ts'],
    pool: 'forks',
    maxWorkers: 2,
    sequence: { sequencer: SlowestFirst },
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // A wait ends when its event came; only a fault on a busy machine gets near this.
    expect: { poll: { timeout: 30_000, interval: 20 } },
    env: { TZ: 'UTC' },
  },
});

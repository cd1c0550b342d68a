import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    reporters: ['default', './test/support/closing-line.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // A wait ends when its event came; only a fault on a busy machine gets near this.
    expect: { poll: { timeout: 30_000, interval: 20 } },
    env: { TZ: 'UTC' },
  },
});

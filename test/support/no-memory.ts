// Where a test is not about memory: nothing is kept of anybody.

import type { MemoryDesk } from '../../src/gateway/memory-desk.ts';

export const NO_MEMORY: MemoryDesk = {
  show: async () => 'Nothing is kept.',
  handOut: async () => 'Nothing is kept.',
  forget: async () => 'Nothing is kept.',
  handler: { answer: async () => '' },
};

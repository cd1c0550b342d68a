// Where a test is not about memory: nothing is kept of anybody.

import type { CommandDeps } from '../../src/kernel/commands/command.ts';

export const NO_MEMORY: CommandDeps['memory'] = {
  notesOf: async () => '',
  show: async () => 'Nothing is kept.',
  handOut: async () => 'Nothing is kept.',
  forget: async () => 'Nothing is kept.',
  reflect: async () => 'Nothing is kept.',
  handler: { answer: async () => '' },
};

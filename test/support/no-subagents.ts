// Where a test is not about helpers: there are none.

import type { SubagentView } from '../../src/features/subagents/agents-commands.ts';
import type { SpawnSubagents } from '../../src/features/subagents/spawn.ts';

const none = async () => ({ text: 'No subagents are running.', isForeign: false });

export const noSubagents = (): SpawnSubagents => ({
  isEnabled: () => true,
  ...{ start: none, list: none, check: none, wait: none, cancel: none },
});

export const NO_SUBAGENTS: SubagentView = {
  all: async () => [],
  lines: async () => [],
  atWork: async () => [],
  kill: async () => '',
  stopAll: async () => 0,
};

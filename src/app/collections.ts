// The collections that several features use, opened once in a process.

import { openSubagents, type SubagentRows } from '../features/subagents/subagent-rows.ts';
import type { OpenRows } from '../kernel/rows.ts';

export type Collections = {
  readonly subagents: SubagentRows;
};

export const openCollections = (rows: OpenRows): Collections => ({
  subagents: openSubagents(rows),
});

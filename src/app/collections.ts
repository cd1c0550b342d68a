// The collections that several features use, opened once in a process.

import { type JobRows, openJobRows } from '../features/schedule/job-rows.ts';
import { openSubagents, type SubagentRows } from '../features/subagents/subagent-rows.ts';
import { openWorkflowRows, type WorkflowRows } from '../features/workflows/workflow-rows.ts';
import type { OpenRows } from '../kernel/rows.ts';
import type { Redactor } from '../lib/text/redact.ts';

export type Collections = {
  readonly subagents: SubagentRows;
  readonly jobs: JobRows;
  readonly workflows: WorkflowRows;
};

export const openCollections = (rows: OpenRows, redact: Redactor): Collections => ({
  subagents: openSubagents(rows),
  jobs: openJobRows(rows),
  workflows: openWorkflowRows(rows, redact),
});

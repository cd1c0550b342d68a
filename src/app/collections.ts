// The collections that several features use, opened once in a process.

import { type Approval, openApprovalRows } from '../features/approvals/approval-rows.ts';
import { type JobRows, openJobRows } from '../features/schedule/job-rows.ts';
import { openSubagents, type SubagentRows } from '../features/subagents/subagent-rows.ts';
import { openWorkflowRows, type WorkflowRows } from '../features/workflows/workflow-rows.ts';
import type { OpenRows, Rows } from '../kernel/rows.ts';
import type { Redactor } from '../lib/text/redact.ts';

export type Collections = {
  /** Tool calls that need an approval. */
  readonly calls: Rows<Approval>;
  readonly subagents: SubagentRows;
  readonly jobs: JobRows;
  readonly workflows: WorkflowRows;
};

export const openCollections = (rows: OpenRows, redact: Redactor): Collections => ({
  calls: openApprovalRows(rows),
  subagents: openSubagents(rows),
  jobs: openJobRows(rows),
  workflows: openWorkflowRows(rows, redact),
});

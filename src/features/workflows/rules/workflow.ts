// The stored form of a workflow run beside its state: who started it, its rights and its result.
// Pure; workflow-runs.ts runs and stores it and reports its end.

import { narrowed, type Rights, UNRESTRICTED } from '../../../kernel/access/rights.ts';
import type { JsonObject } from '../../../kernel/config/json.ts';
import { RequestError } from '../../../kernel/message/errors.ts';
import type { MessageId, SessionKey } from '../../../kernel/message/ids.ts';
import { type ChatRef, workChannel } from '../../../kernel/message/message.ts';
import { defined } from '../../../lib/json/json.ts';
import { msgid, ngettext, t } from '../../../lib/texts.ts';
import type { Commission } from '../../subagents/rules/subagent.ts';
import type { WorkflowState } from './state.ts';

/** A request that cannot be met; `message` says what to do instead. */
export class WorkflowError extends RequestError {
  override readonly name = 'WorkflowError';
  constructor(message: string) {
    super('workflow_refused', message);
  }
}

/** Where the result goes, and the session or job that the run belongs to. */
type WorkflowHome =
  | { readonly kind: 'chat'; readonly session: SessionKey; readonly chat: ChatRef }
  | { readonly kind: 'job'; readonly job: string };

/** Who started it. */
export type WorkflowStarter = Commission & {
  readonly home: WorkflowHome;
  /** The model of the session; left out: the default. */
  readonly model?: string;
};

export type WorkflowEnding = 'done' | 'failed' | 'cancelled';

export type WorkflowRun = {
  readonly id: string;
  readonly workflow: string;
  readonly starter: WorkflowStarter;
  /** The message that started it. */
  readonly begunBy: MessageId;
  readonly state: WorkflowState;
  /** Epoch milliseconds, as everywhere here. */
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly status: 'running' | 'waiting' | WorkflowEnding;
  /** The result, or why it failed. */
  readonly result?: string;
  /** Whether the starter still has to be notified. */
  readonly telling: 'due' | 'over';
};

/** `input`: by name, or as typed. */
export type WorkflowWish = { readonly workflow: string; readonly input: JsonObject | string };

export const {
  channel: WORKFLOW_CHANNEL,
  chatOf: workflowChat,
  sessionOf: workflowSession,
} = workChannel('workflow');

/** Steps make no jobs, and send only what the workflow declares. */
const STEP_RIGHTS: Rights = {
  ...UNRESTRICTED,
  ...{ schedule: 'never', say: 'never', own: ['write'] },
};

/** Never more than the rights of its starter at that moment. */
export const workflowRights = ({ rights }: WorkflowStarter): Rights =>
  narrowed(rights, STEP_RIGHTS);

export const isOver = (
  run: WorkflowRun,
): run is WorkflowRun & { readonly status: WorkflowEnding } =>
  run.status !== 'running' && run.status !== 'waiting';

const SECOND_MS = 1000;

/** A line for people and for the model. */
export function workflowLine(run: WorkflowRun, now: number): string {
  const { id, workflow, status, state, startedAt, endedAt } = run;
  const seconds = Math.round(Math.max(0, (endedAt ?? now) - startedAt) / SECOND_MS);
  const span = seconds < 120 ? `${seconds} s` : t`${Math.round(seconds / 60)} min`;
  const at = state.underWay === undefined ? '' : t` at ${state.underWay.step}`;
  const how =
    status === 'waiting'
      ? t`waits for an approval${at}`
      : isOver(run)
        ? t`${status} after ${span}`
        : t`running for ${span}${at}`;
  const steps = ngettext(msgid`${state.number} step`, `${state.number} steps`, state.number);
  return t`${id} ${workflow}: ${how}, ${steps}, ${state.tokens} tokens`;
}

/** What the starter may see: the run without internal fields. */
export function inspected(run: WorkflowRun): Readonly<Record<string, unknown>> {
  const { id, workflow, status, startedAt, endedAt, result, state } = run;
  return { id, workflow, status, startedAt, ...defined({ endedAt, result }), state };
}

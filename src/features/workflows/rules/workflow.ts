// What is kept of one run of a workflow beside its state: who started it, with which rights, and what
// came of it. Pure rules; carrying out, storing and telling are src/automation's.

import { narrowed, type Rights, UNRESTRICTED } from '../../../kernel/access/rights.ts';
import type { JsonObject } from '../../../kernel/config/json.ts';
import { NanobotError } from '../../../kernel/message/errors.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  type MessageId,
  type SessionKey,
} from '../../../kernel/message/ids.ts';
import { type ChatRef, type SystemSender, sessionKeyOf } from '../../../kernel/message/message.ts';
import type { TurnPerson } from '../../../kernel/message/untrusted.ts';
import type { WorkflowState } from './state.ts';

/** What was asked of workflows cannot be had; `message` says what to do instead. */
export class WorkflowError extends NanobotError {
  override readonly name = 'WorkflowError';
  constructor(message: string) {
    super('workflow_refused', message, { userText: message });
  }
}

/** Where the result goes, and whose conversation the run belongs to. */
type WorkflowHome =
  | { readonly kind: 'chat'; readonly session: SessionKey; readonly chat: ChatRef }
  | { readonly kind: 'job'; readonly job: string };

/** Who started it, and what was allowed there at that moment. */
export type WorkflowStarter = {
  readonly home: WorkflowHome;
  readonly rights: Rights;
  readonly isTainted: boolean;
  readonly person: TurnPerson;
  /** Who pays: the chat or the job, and the person. */
  readonly payingChat: ChatRef;
  readonly payer: Pick<SystemSender, 'paidBy' | 'limits'>;
  /** Chosen for the conversation; left out: the default. */
  readonly model?: string;
};

export type WorkflowEnding = 'done' | 'failed' | 'cancelled';

export type WorkflowRun = {
  readonly id: string;
  readonly workflow: string;
  readonly starter: WorkflowStarter;
  /** The message that began it. */
  readonly begunBy: MessageId;
  readonly state: WorkflowState;
  /** Epoch milliseconds, as everywhere here. */
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly status: 'running' | 'waiting' | WorkflowEnding;
  /** What it was for, or why it came to nothing. */
  readonly result?: string;
  /** Whether whoever started it still has to be told. */
  readonly telling: 'due' | 'over';
};

/** `input`: by name, or as somebody typed it. */
export type WorkflowWish = { readonly workflow: string; readonly input: JsonObject | string };

/** For the model. Where it holds words of others, they are marked. */
export type WorkflowAnswer = { readonly text: string; readonly isForeign: boolean };

export const WORKFLOW_CHANNEL = channelName('workflow');

export const workflowChat = (id: string): ChatRef => ({
  channel: WORKFLOW_CHANNEL,
  account: DEFAULT_ACCOUNT,
  chat: chatId(id),
});

export const workflowSession = (id: string): SessionKey => sessionKeyOf(workflowChat(id));

/** Its steps make no jobs, and speak in the chat only by what the workflow says itself. */
const STEP_RIGHTS: Rights = {
  ...UNRESTRICTED,
  ...{ schedule: 'never', say: 'never', own: ['write'] },
};

/** Never more than whoever started it might do at that moment. */
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
  const span = seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  const at = state.underWay === undefined ? '' : ` at ${state.underWay.step}`;
  const how =
    status === 'waiting'
      ? `waits for an approval${at}`
      : isOver(run)
        ? `${status} after ${span}`
        : `running for ${span}${at}`;
  const steps = `${state.number} ${state.number === 1 ? 'step' : 'steps'}`;
  return `${id} ${workflow}: ${how}, ${steps}, ${state.tokens} tokens`;
}

/** What whoever started it may look at: everything but the machinery around it. */
export function inspected(run: WorkflowRun): Readonly<Record<string, unknown>> {
  const { id, workflow, status, startedAt, endedAt, result, state } = run;
  return {
    ...{ id, workflow, status, startedAt },
    ...(endedAt === undefined ? {} : { endedAt }),
    ...(result === undefined ? {} : { result }),
    state,
  };
}

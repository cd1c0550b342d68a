// Carries out one TOOL: by the same toolbox, rights and questions to owners as a call that a model makes.
// What an owner decided about it stands in the book of approvals.

import type { TurnInput } from '../../agent/agent.ts';
import { NOT_ALLOWED, runCall } from '../../agent/run-call.ts';
import type { AgentSettings } from '../../agent/settings.ts';
import { isRepeatable } from '../../kernel/access/rights.ts';
import type { ToolFailureKind } from '../../kernel/message/errors.ts';
import { callId } from '../../kernel/message/ids.ts';
import { unwrapped } from '../../kernel/message/untrusted.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { BoundCall, Toolbox } from '../../tools/tool.ts';
import type { Approval } from '../approvals/approval-rows.ts';
import type { ToolStep } from './rules/definition.ts';
import { isStepTool } from './rules/file.ts';
import type { StepResult, WorkflowState } from './rules/state.ts';
import { fillValue, INPUT } from './rules/template.ts';
import { missing } from './workflow-ask.ts';

export type ToolDeps = {
  readonly clock: Clock;
  /** What was asked of an owner, by `turnId/number`. */
  readonly approvals: { get(id: string): Promise<Approval | undefined> };
  toolbox(): Toolbox;
  settings(): AgentSettings;
};

export type ToolCall = {
  readonly step: ToolStep;
  readonly number: number;
  readonly state: WorkflowState;
  readonly input: TurnInput;
};

export type PlannedCall =
  | { readonly kind: 'ready'; readonly bound: BoundCall; readonly isEffectful: boolean }
  | { readonly kind: 'not'; readonly result: StepResult };

const UNKNOWN = 'outcome unknown: the process stopped while the call that was allowed ran';
const DENIED = 'an owner did not allow it';
const NO_RIGHT = 'whoever started it may not have this done';

/** The call with its arguments filled in; nothing is done yet. */
export function planTool({ toolbox }: ToolDeps, { step, state }: ToolCall): PlannedCall {
  const filled = fillValue(step.arguments, state);
  if (filled.kind === 'missing') return { kind: 'not', result: missing(filled.paths) };
  if (!isStepTool(step.tool)) return refused(`the tool ${step.tool} cannot be a step`);
  const bound = toolbox().bind(step.tool, JSON.stringify(filled.value));
  if (bound.kind === 'refused') return refused(bound.outcome.text);
  if (!isStepTool(bound.name)) return refused(`the tool ${bound.name} cannot be a step`);
  return { kind: 'ready', bound, isEffectful: !isRepeatable(bound.accessIn({ isTainted: false })) };
}

const refused = (error: string): PlannedCall => ({
  kind: 'not',
  result: { kind: 'failed', error, mayRetry: false },
});

/** @throws the signal's reason, where it was broken off */
export async function runTool(
  deps: ToolDeps,
  call: ToolCall & { readonly isEffectful: boolean },
  bound: BoundCall,
  signal: AbortSignal,
): Promise<StepResult> {
  const { input, number, step, state } = call;
  const report = await runCall(
    {
      ...{ input, signal, clock: deps.clock, settings: deps.settings() },
      toolbox: { ...deps.toolbox(), offered: () => ({ specs: [], guidance: '' }) },
      rights: { current: input.rights },
      thread: {
        isTainted: state.isTainted,
        knownTexts: knownTexts(call),
        attached: [],
        ordinalOf: () => number,
        callsBefore: () => [],
      },
    },
    { id: callId(`${step.id}-${number}`), name: step.tool, arguments: '' },
    bound,
  );
  if (report.status !== 'ok') signal.throwIfAborted();
  const isForeign = report.isForeign === true;
  if (report.status === 'ok') return { kind: 'tool', text: unwrapped(report.text), isForeign };
  const asked = `${input.turnId}/${number}`;
  const isAsked = (await deps.approvals.get(asked))?.state.kind === 'open';
  if (isAsked) return { kind: 'waiting', approval: asked };
  const mayRetry = isWorthAgain(report.failure, call.isEffectful);
  const error = report.text === NOT_ALLOWED ? NO_RIGHT : unwrapped(report.text);
  return { kind: 'failed', error, mayRetry, isForeign };
}

/** What is not allowed or not understood stays so; what ran out of time may have done something. */
function isWorthAgain(failure: ToolFailureKind | undefined, isEffectful: boolean): boolean {
  if (failure === 'permission' || failure === 'invalid_arguments') return false;
  return !(isEffectful && (failure === 'timeout' || failure === 'cancelled'));
}

/** What came of a call that waited for an owner; undefined: nothing yet. */
export async function decidedTool(
  { approvals }: ToolDeps,
  approval: string,
): Promise<StepResult | undefined> {
  const state = (await approvals.get(approval))?.state;
  if (state === undefined) return { kind: 'failed', error: UNKNOWN, mayRetry: false };
  switch (state.kind) {
    case 'open':
    case 'granted':
      return undefined;
    case 'denied':
    case 'expired':
      return { kind: 'failed', error: DENIED, mayRetry: false };
    case 'running':
      return { kind: 'failed', error: UNKNOWN, mayRetry: false };
    case 'done': {
      const { status, isForeign } = state;
      const text = unwrapped(state.text);
      if (status === 'ok') return { kind: 'tool', text, isForeign };
      return { kind: 'failed', error: text, mayRetry: false, isForeign };
    }
  }
}

/** What the workflow itself says was written by an owner, what was typed by whoever started it. */
function knownTexts({ step, state }: ToolCall) {
  const texts = Object.entries(state.values).map(([name, value]) => [name, textOf(value)] as const);
  const typed = texts.filter(([name]) => name === INPUT && !state.foreign.includes(name));
  const foreign = texts.filter(([name]) => state.foreign.includes(name));
  return {
    own: [textOf(step.arguments), ...typed.map(([, text]) => text)],
    foreign: foreign.map(([, text]) => text),
  };
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

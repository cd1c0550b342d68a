// The state of one run of a workflow, the kinds of step results, and a handler for each. Handlers
// never modify their arguments: each update is a new state that can be stored and compared.

import type { JsonObject, JsonValue } from '../../../kernel/config/json.ts';
import { canonicalJson, readJson } from '../../../lib/json/json.ts';
import { headOf } from '../../../lib/text/cut.ts';
import { t } from '../../../lib/texts.ts';
import type { Ballot } from '../../subagents/rules/vote.ts';
import type { Definition, SkillStep, Step, ToolStep, WorkflowLimits } from './definition.ts';
import { type Condition, holds, INPUT } from './template.ts';

/** The ballot of one voter of a step, with the value of a valid one. */
export type Cast = {
  readonly voter: number;
  readonly ballot: Ballot;
  readonly value?: JsonObject;
};

export type Spent = { readonly tokens: number; readonly micros: number };

export type StepResult =
  /** The step is about to run. */
  | { readonly kind: 'begun'; readonly isEffectful: boolean }
  /** A model's answer that matches the schema. */
  | {
      readonly kind: 'skill';
      readonly value: JsonObject;
      readonly isForeign: boolean;
      readonly spent: Spent;
    }
  /** The answer of one of several voters. */
  | { readonly kind: 'cast'; readonly cast: Cast; readonly spent: Spent }
  /** The vote has no winner; `error` says why. */
  | { readonly kind: 'undecided'; readonly error: string; readonly isForeign: boolean }
  | { readonly kind: 'tool'; readonly text: string; readonly isForeign: boolean }
  /** `isForeign`: the reason may contain untrusted content. */
  | {
      readonly kind: 'failed';
      readonly error: string;
      readonly mayRetry: boolean;
      readonly isForeign?: boolean;
      readonly spent?: Spent;
    }
  /** Waits for an approval. */
  | { readonly kind: 'waiting'; readonly approval: string }
  /** The process was killed while it ran. */
  | { readonly kind: 'broken_off' };

type StepRecord = {
  /** Number of starts, without retries. */
  readonly runs: number;
  /** Attempts of the newest run. */
  readonly tries: number;
  /**
   * `again`: it failed and is retried; `undecided`: its vote has no winner; `unknown`: its outcome
   * is not known after a crash.
   */
  readonly status: 'running' | 'waiting' | 'again' | 'done' | 'failed' | 'undecided' | 'unknown';
  readonly error?: string;
  /** Value of `changes` when it started. */
  readonly ranAt: number;
};

/** A step that started and has no result yet. The ids of its effects derive from its number. */
type UnderWay = {
  readonly step: string;
  readonly number: number;
  /** Repeating it might repeat an effect. */
  readonly isEffectful: boolean;
  /** The step started before it. */
  readonly after?: string;
  /** The id of the pending approval. */
  readonly approval?: string;
};

export type WorkflowState = {
  readonly values: JsonObject;
  /** Names of the values that contain untrusted content. */
  readonly foreign: readonly string[];
  /** Untrusted content was read; never reset. */
  readonly isTainted: boolean;
  readonly steps: Readonly<Record<string, StepRecord>>;
  /** The step started last. */
  readonly last?: string;
  /** Number of steps started so far. */
  readonly number: number;
  readonly changes: number;
  readonly tokens: number;
  /** Millionths of the currency. */
  readonly micros: number;
  readonly underWay?: UnderWay;
  /** Ballots of the current step, by its number: after a crash these voters are not asked again. */
  readonly vote?: { readonly number: number; readonly casts: readonly Cast[] };
};

type Handler<Result> = (state: WorkflowState, step: Step, result: Result) => WorkflowState;
type Handlers = {
  readonly [K in StepResult['kind']]: Handler<Extract<StepResult, { readonly kind: K }>>;
};

const MAX_ERROR_CHARS = 600;
const NEW: StepRecord = { runs: 0, tries: 0, status: 'running', ranAt: 0 };
const OUTCOME_UNKNOWN = t`outcome unknown: the process stopped while it ran; it is not repeated automatically`;

export function newState(input: JsonObject, isForeign: boolean): WorkflowState {
  return {
    values: { [INPUT]: input },
    foreign: isForeign ? [INPUT] : [],
    isTainted: isForeign,
    ...{ steps: {}, number: 0, changes: 0, tokens: 0, micros: 0 },
  };
}

/** The state after the result of a step. */
export function updated(state: WorkflowState, step: Step, result: StepResult): WorkflowState {
  const handle = HANDLERS[result.kind] as Handler<StepResult>;
  return handle(state, step, result);
}

const HANDLERS: Handlers = {
  begun(state, { id }, { isEffectful }) {
    const record = recordOf(state, id);
    const isAgain = record.status === 'again';
    const number = state.number + 1;
    const begun: StepRecord = {
      runs: record.runs + (isAgain ? 0 : 1),
      tries: isAgain ? record.tries + 1 : 1,
      ...{ status: 'running', ranAt: state.changes },
    };
    const after = state.last === undefined ? {} : { after: state.last };
    const underWay = { step: id, number, isEffectful, ...after };
    const { vote, ...rest } = withRecord(state, id, begun);
    const casts = vote?.number === number ? { vote } : {};
    return { ...rest, ...casts, last: id, number, underWay };
  },

  skill: (state, step, { value, isForeign, spent }) =>
    withValue(charged(state, spent), step, value, isForeign),

  cast(state, _step, { cast, spent }) {
    const { underWay, vote } = state;
    if (underWay === undefined) return state;
    const before = vote?.number === underWay.number ? vote.casts : [];
    if (before.some(({ voter }) => voter === cast.voter)) return state;
    return {
      ...charged(state, spent),
      vote: { number: underWay.number, casts: [...before, cast] },
    };
  },

  undecided(state, step, { error, isForeign }) {
    const result = { kind: 'failed', error, mayRetry: true, isForeign } as const;
    const failed = HANDLERS.failed(state, step, result);
    const record = recordOf(failed, step.id);
    if (record.status === 'again') return failed;
    return withRecord(failed, step.id, { ...record, status: 'undecided' });
  },

  tool: (state, step, { text, isForeign }) => withValue(state, step, toolValue(text), isForeign),

  failed(state, { id, retries }, { error, mayRetry, spent, isForeign }) {
    const record = recordOf(state, id);
    const failed: StepRecord = {
      ...record,
      status: mayRetry && record.tries <= retries ? 'again' : 'failed',
      error: headOf(error, MAX_ERROR_CHARS),
    };
    const isTainted = state.isTainted || isForeign === true;
    return over({ ...withRecord(charged(state, spent), id, failed), isTainted });
  },

  waiting(state, { id }, { approval }) {
    const { underWay } = state;
    const waiting = withRecord(state, id, { ...recordOf(state, id), status: 'waiting' });
    return underWay === undefined ? waiting : { ...waiting, underWay: { ...underWay, approval } };
  },

  broken_off(state, { id }) {
    const record = recordOf(state, id);
    if (state.underWay?.isEffectful === true) {
      const unknown = { ...record, status: 'unknown', error: OUTCOME_UNKNOWN } as const;
      return over(withRecord(state, id, unknown));
    }
    // Resets the step to before its start; it starts again under the same number.
    const wasAgain = record.tries > 1;
    const before = wasAgain
      ? ({ ...record, tries: record.tries - 1, status: 'again' } as const)
      : { ...record, runs: record.runs - 1, ...undone(record) };
    const { last: _begun, ...ended } = over(withRecord(state, id, before));
    const rest = state.vote === undefined ? ended : { ...ended, vote: state.vote };
    const after = wasAgain ? id : state.underWay?.after;
    return { ...rest, ...(after === undefined ? {} : { last: after }), number: state.number - 1 };
  },
};

/** Its record before its newest run. */
const undone = ({ runs }: StepRecord) =>
  ({ status: runs > 1 ? 'done' : 'running', ranAt: -1, tries: 0 }) as const;

/** For conditions; a running step has no status. */
export function statusOf(state: WorkflowState, step: string): 'done' | 'failed' | undefined {
  const record = Object.hasOwn(state.steps, step) ? state.steps[step] : undefined;
  if (record?.status === 'done') return 'done';
  const { status } = record ?? {};
  const isOut = status === 'failed' || status === 'undecided' || status === 'unknown';
  return isOut ? 'failed' : undefined;
}

export const recordOf = (state: WorkflowState, step: string): StepRecord =>
  (Object.hasOwn(state.steps, step) ? state.steps[step] : undefined) ?? NEW;

const withRecord = (state: WorkflowState, id: string, record: StepRecord): WorkflowState => ({
  ...state,
  steps: { ...state.steps, [id]: record },
});

function withValue(
  state: WorkflowState,
  { id, sets }: Step,
  value: JsonValue,
  isForeign: boolean,
): WorkflowState {
  const before = Object.hasOwn(state.values, sets) ? state.values[sets] : undefined;
  const isChanged = spelled(before) !== spelled(value);
  const { error: _past, ...record } = recordOf(state, id);
  const others = state.foreign.filter((name) => name !== sets);
  return over({
    ...withRecord(state, id, { ...record, status: 'done' }),
    values: { ...state.values, [sets]: value },
    foreign: isForeign ? [...others, sets] : others,
    isTainted: state.isTainted || isForeign,
    changes: state.changes + (isChanged ? 1 : 0),
  });
}

function over({ underWay: _over, vote: _counted, ...state }: WorkflowState): WorkflowState {
  return state;
}

const charged = (state: WorkflowState, spent: Spent = { tokens: 0, micros: 0 }): WorkflowState => ({
  ...state,
  tokens: state.tokens + spent.tokens,
  micros: state.micros + spent.micros,
});

const spelled = (value: JsonValue | undefined) =>
  value === undefined ? undefined : canonicalJson(JSON.stringify(value));

/** `json` where the text is an object or a list that can be stored again. */
function toolValue(text: string): JsonObject {
  if (!/^\s*[[{]/.test(text)) return { text };
  const read = readJson(text);
  return read.kind === 'parsed' ? { text, json: read.value as JsonValue } : { text };
}

// Decides the next step of a run from its definition and the flags of its state, never from what a
// model says. Deterministic and total. A run cannot loop for ever: it is bounded, and a step
// repeats only after a value changed.

export type Decision =
  | { readonly kind: 'LLM_SKILL'; readonly step: SkillStep; readonly number: number }
  | { readonly kind: 'TOOL'; readonly step: ToolStep; readonly number: number }
  | { readonly kind: 'COMPLETE' }
  /** Nothing to do: `waiting` for now, otherwise for good. `reason` is for people. */
  | {
      readonly kind: 'NOOP';
      readonly why: 'waiting' | 'failed' | 'limit' | 'stuck';
      readonly reason: string;
    };

/** Per unit of money. */
export const MICROS = 1_000_000;

/** `most`: the limits of every run; the lower of these and the workflow's own apply. */
export function decide(
  { workflow }: Definition,
  state: WorkflowState,
  most: WorkflowLimits,
): Decision {
  const { steps, complete } = workflow;
  const { underWay } = state;
  if (underWay !== undefined) {
    const what = underWay.approval === undefined ? t`is running` : t`waits for an approval`;
    return { kind: 'NOOP', why: 'waiting', reason: t`the step ${underWay.step} ${what}` };
  }
  const failed = steps.find((step) => step.onFailure === 'stop' && isFailed(step, state));
  if (failed !== undefined) {
    const reason = t`the step ${failed.id} failed: ${recordOf(state, failed.id).error ?? t`no reason is known`}`;
    return { kind: 'NOOP', why: 'failed', reason };
  }
  if (complete !== undefined && isTrue(complete, state)) return { kind: 'COMPLETE' };
  const next = nextStep(steps, state);
  if (next === undefined && complete === undefined) return { kind: 'COMPLETE' };
  if (next === undefined) return { kind: 'NOOP', why: 'stuck', reason: STUCK };
  const limit = usedUp(state, workflow.limits, most);
  if (limit !== undefined) return { kind: 'NOOP', why: 'limit', reason: limit };
  const number = state.number + 1;
  return next.kind === 'tool'
    ? { kind: 'TOOL', step: next, number }
    : { kind: 'LLM_SKILL', step: next, number };
}

const STUCK =
  t`no step can run, since nothing changed after each was done, and the condition for the end of the ` +
  t`workflow is not met`;

/** A step to be retried comes first, then the others in order, starting after the last one. */
function nextStep(steps: readonly Step[], state: WorkflowState): Step | undefined {
  const at = steps.findIndex(({ id }) => id === state.last);
  const last = steps[at];
  if (last !== undefined && recordOf(state, last.id).status === 'again') return last;
  const inOrder = [...steps.slice(at + 1), ...steps.slice(0, at + 1)];
  return inOrder.find((step) => isDue(step, state));
}

function isDue(step: Step, state: WorkflowState): boolean {
  const { runs, ranAt } = recordOf(state, step.id);
  if (isFailed(step, state) || runs >= step.runs) return false;
  if (runs > 0 && state.changes <= ranAt) return false;
  return step.when === undefined || isTrue(step.when, state);
}

const isFailed = ({ id }: Step, state: WorkflowState) => statusOf(state, id) === 'failed';

const isTrue = (condition: Condition, state: WorkflowState) =>
  holds(condition, { values: state.values, status: (step) => statusOf(state, step) });

function usedUp(
  { number, tokens, micros }: WorkflowState,
  own: WorkflowLimits,
  most: WorkflowLimits,
): string | undefined {
  const steps = less(own.steps, most.steps);
  if (number >= steps) return t`all ${steps} steps it may take are used up`;
  const maxTokens = less(own.tokens, most.tokens);
  if (tokens >= maxTokens) return t`all ${maxTokens} tokens it may take are used up`;
  const money = less(own.money, most.money);
  return micros >= money * MICROS ? t`its limit of ${money} is used up` : undefined;
}

export const less = (one = Number.POSITIVE_INFINITY, other = Number.POSITIVE_INFINITY) =>
  Math.min(one, other);

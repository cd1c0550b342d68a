// Executes runs of workflows: decides the next step, runs it, and stores the state before and after
// it. After a crash a run continues at the current step; a step that may have had an effect is not
// repeated. The turn that ends a run also reports it.

import type { TurnInput } from '../../agent/agent.ts';
import { SpendingRefusedError } from '../../agent/agent.ts';
import { TurnCancelled } from '../../kernel/bus/bus.ts';
import { callId } from '../../kernel/message/ids.ts';
import type { AgentEvent, TurnOutcome } from '../../kernel/message/message.ts';
import type { Logger } from '../../lib/logger.ts';
import { t } from '../../lib/texts.ts';
import { following } from '../../lib/time/clock.ts';
import {
  type Ballot,
  nextVoters,
  senderOf,
  undecidedText,
  valueKey,
  verdictOf,
  voteTermsOf,
} from '../subagents/index.ts';
import type { VotingConfig } from '../subagents/settings.ts';
import type { Definition, Step, WorkflowLimits } from './rules/definition.ts';
import {
  type Cast,
  type Decision,
  decide,
  less,
  MICROS,
  type Spent,
  type StepResult,
  updated,
} from './rules/state.ts';
import { fillPrompt } from './rules/template.ts';
import { isOver, type WorkflowEnding, type WorkflowRun } from './rules/workflow.ts';
import {
  askSkill,
  decidedTool,
  failedForGood,
  NOTHING,
  type PreparedSkill,
  planTool,
  readAnswer,
  runSkill,
  runTool,
  type SkillAnswer,
  type SkillCall,
  type SkillDeps,
  sumOf,
  type ToolDeps,
  unpriced,
  usedUp,
  withSkill,
} from './workflow-ask.ts';
import { changeRun, type WorkflowRows } from './workflow-rows.ts';

export type WorkflowAgentDeps = SkillDeps &
  ToolDeps & {
    readonly rows: WorkflowRows;
    readonly log: Logger;
    most(): WorkflowLimits & { readonly minutes: number };
    /** Sends a text to where the run belongs; `name` is stable over repetitions. */
    say(run: WorkflowRun, name: string, text: string): Promise<void>;
    /** Ends the run and reports it; a repetition changes nothing. */
    end(run: WorkflowRun, how: WorkflowEnding, result: string): Promise<void>;
    /** Reports the end to the starter, once. */
    tell(id: string): Promise<void>;
  };

type Acting = Extract<Decision, { readonly kind: 'LLM_SKILL' | 'TOOL' }>;

class WorkflowTimeUp extends Error {
  override readonly name = 'WorkflowTimeUp';
}

const MINUTE_MS = 60_000;
const GONE = t`its inputs are no longer stored`;

export async function* runWorkflow(
  deps: WorkflowAgentDeps,
  input: TurnInput,
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, TurnOutcome['kind'], void> {
  const { rows, clock, log } = deps;
  const run = await rows.runs.get(input.chat.chat);
  if (run === undefined) return 'answered';
  if (isOver(run)) {
    await deps.tell(run.id);
    return 'answered';
  }
  const definition = await rows.definitions.get(run.id);
  if (definition === undefined) {
    await deps.end(run, 'failed', GONE);
    return 'failed';
  }
  using ending = following(signal);
  const minutes = minutesOf(definition, deps);
  const leftMs = Math.max(1, run.startedAt + minutes * MINUTE_MS - clock.now());
  using _deadline = clock.timer(leftMs, () => ending.abort(new WorkflowTimeUp()));
  try {
    const acting = { deps, definition, input, signal: ending.signal };
    return yield* advance(await takenUp(acting, run), acting);
  } catch (error) {
    const reason = signal.aborted ? signal.reason : error;
    if (reason instanceof TurnCancelled) {
      await deps.end(run, 'cancelled', t`stopped by a person`);
      return 'stopped';
    }
    const text = textOf(reason, minutes);
    if (text === undefined) throw reason;
    log.warn('workflow ended early', { run: run.id, error: reason });
    await deps.end((await rows.runs.get(run.id)) ?? run, 'failed', text);
    return 'failed';
  }
}

const minutesOf = ({ workflow }: Definition, { most }: WorkflowAgentDeps) =>
  Math.min(workflow.limits.minutes ?? most().minutes, most().minutes);

/** The reason that ends the run; undefined: the turn has to run again. */
function textOf(reason: unknown, minutes: number): string | undefined {
  if (reason instanceof WorkflowTimeUp) return t`its time limit (${minutes} minutes) is reached`;
  return reason instanceof SpendingRefusedError ? reason.text : undefined;
}

type Running = {
  readonly deps: WorkflowAgentDeps;
  readonly definition: Definition;
  readonly input: TurnInput;
  readonly signal: AbortSignal;
};

/** First settles the step that an earlier turn left unfinished. */
async function takenUp(running: Running, run: WorkflowRun): Promise<WorkflowRun | undefined> {
  const { underWay } = run.state;
  const step = running.definition.workflow.steps.find(({ id }) => id === underWay?.step);
  if (underWay === undefined || step === undefined) return run;
  if (underWay.approval === undefined) return kept(running, run, step, { kind: 'broken_off' });
  const decided = await decidedTool(running.deps, underWay.approval);
  return decided === undefined ? run : kept(running, run, step, decided);
}

async function* advance(
  first: WorkflowRun | undefined,
  running: Running,
): AsyncGenerator<AgentEvent, TurnOutcome['kind'], void> {
  const { deps, definition, signal } = running;
  let run = first;
  // Undefined: something else ended it meanwhile.
  while (run !== undefined) {
    signal.throwIfAborted();
    const decision = decide(definition, run.state, deps.most());
    if (decision.kind === 'COMPLETE') {
      await deps.end(run, 'done', resultOf(definition, run));
      return 'answered';
    }
    if (decision.kind === 'NOOP') {
      if (decision.why === 'waiting') return 'answered';
      await deps.end(run, 'failed', decision.reason);
      return 'failed';
    }
    run = yield* act(running, run, decision);
  }
  return 'stopped';
}

async function* act(
  running: Running,
  run: WorkflowRun,
  decision: Acting,
): AsyncGenerator<AgentEvent, WorkflowRun | undefined, void> {
  const { deps, signal, input } = running;
  const { step, number } = decision;
  const { state } = run;
  const call = { number, state, input };
  const planned =
    decision.kind === 'TOOL' ? planTool(deps, { ...call, step: decision.step }) : undefined;
  const isEffectful = planned?.kind === 'ready' && planned.isEffectful;
  const begun = await kept(running, run, step, { kind: 'begun', isEffectful });
  if (begun === undefined) return undefined;
  deps.log.info('workflow step', { run: run.id, step: step.id, number, kind: decision.kind });
  const id = callId(`${step.id}-${number}`);
  if (decision.kind === 'TOOL') {
    yield { type: 'tool_started', callId: id, name: decision.step.tool, detail: step.label };
  }
  if (step.say !== undefined) await announce(running, begun, step.say);
  const result = await resultOfStep(begun);
  if (decision.kind === 'TOOL') {
    yield { type: 'tool_finished', callId: id, status: statusOf(result), preview: '' };
  }
  return kept(running, begun, step, result);

  async function resultOfStep(now: WorkflowRun): Promise<StepResult> {
    if (decision.kind === 'LLM_SKILL') return skillResult(running, now, decision);
    if (planned?.kind !== 'ready') return planned?.result ?? failedForGood(t`it cannot be run`);
    const toolCall = { ...call, step: decision.step, isEffectful };
    return runTool(deps, toolCall, planned.bound, signal);
  }
}

const statusOf = ({ kind }: StepResult) => (kind === 'failed' ? 'failed' : 'ok');

async function skillResult(
  running: Running,
  run: WorkflowRun,
  { step }: Extract<Acting, { readonly kind: 'LLM_SKILL' }>,
): Promise<StepResult> {
  const { deps, definition, input, signal } = running;
  const { starter, state } = run;
  const { workflow, capabilities } = definition;
  const capability = capabilities[step.capability];
  if (capability === undefined) {
    return failedForGood(t`there is no capability ${step.capability}`);
  }
  const { session, turnId } = input;
  const payer = { chat: starter.payingChat, sender: senderOf('workflow', starter), session };
  const call = {
    ...{ capability, step, state, payer, turnId, model: starter.model },
    hasMoneyLimit: workflow.limits.money !== undefined,
    casts: state.vote?.casts ?? [],
    left: leftOf(running, run),
    keep: async (cast: Cast, spent: Spent) =>
      (await kept(running, run, step, { kind: 'cast', cast, spent })) !== undefined,
  };
  if (step.votes === undefined) return runSkill(deps, call, signal);
  return runVote(deps, call, step.votes, signal);
}

function leftOf({ deps, definition }: Running, { state }: WorkflowRun): Spent {
  const { tokens, money } = definition.workflow.limits;
  const most = deps.most();
  return {
    tokens: less(tokens, most.tokens) - state.tokens,
    micros: less(money, most.money) * MICROS - state.micros,
  };
}

async function announce({ deps }: Running, run: WorkflowRun, template: string): Promise<void> {
  const filled = fillPrompt(template, run.state, (_path, text) => text);
  const text = filled.kind === 'filled' ? filled.value : template;
  await deps.say(run, `say-${run.state.number}`, text);
}

function resultOf({ workflow }: Definition, { state }: WorkflowRun): string {
  if (workflow.result === undefined) return t`Done.`;
  const filled = fillPrompt(workflow.result, state, (_path, text) => text);
  if (filled.kind === 'filled') return filled.value;
  return t`Done, but its result cannot be written: ${filled.problem}.`;
}

/** Stores the result of the step; undefined: the run has ended. */
function kept(
  { deps }: Running,
  { id }: WorkflowRun,
  step: Step,
  result: StepResult,
): Promise<WorkflowRun | undefined> {
  return changeRun(deps.rows, id, (run) => {
    if (isOver(run)) return run;
    const status = result.kind === 'waiting' ? 'waiting' : 'running';
    return { ...run, status, state: updated(run.state, step, result) };
  });
}

// Runs an LLM_SKILL step as a vote: several voters answer the same question concurrently, each
// ballot is stored before the next voters are asked, and the answer counts when the vote is
// decided.

const OVER = t`it was stopped meanwhile`;

/** @param aheadBy required lead in votes @throws as `withSkill` */
const runVote = (deps: SkillDeps, call: SkillCall, aheadBy: number, signal: AbortSignal) =>
  withSkill(deps, call, signal, async (skill): Promise<StepResult> => {
    const { isForeign, failed } = skill;
    const counted = await count(skill, aheadBy);
    if (typeof counted === 'string') return failed(counted);
    const { verdict, casts } = counted;
    await deps.votes.note(verdict);
    if (verdict.kind === 'undecided') {
      return { kind: 'undecided', error: undecidedText(verdict), isForeign };
    }
    const won = casts.find(({ ballot }) => ballot.kind === 'vote' && ballot.key === verdict.key);
    return { kind: 'skill', value: won?.value ?? {}, isForeign, spent: NOTHING };
  });

/** A text: why it cannot go on. */
async function count(skill: PreparedSkill, aheadBy: number) {
  const { deps, call, handle } = skill;
  let casts = call.casts;
  let spent = NOTHING;
  for (;;) {
    const ballots = casts.map(({ ballot }) => ballot);
    const verdict = verdictOf(ballots, voteTermsOf(deps.voting(), aheadBy));
    if (verdict.kind !== 'ask') return { verdict, casts };
    const over = usedUp(spent, call);
    if (over !== undefined) return over;
    const heard = casts.map(({ voter }) => voter);
    const voters = nextVoters(heard, verdict.more);
    const answered = await Promise.allSettled(voters.map((voter) => castOf(skill, voter)));
    const made = answered.map((each) => {
      if (each.status === 'rejected') throw each.reason;
      return each.value;
    });
    if (call.hasMoneyLimit && made.some(({ answer }) => answer.micros === undefined)) {
      return unpriced(handle);
    }
    if (made.some(({ isKept }) => !isKept)) return OVER;
    spent = made.reduce((sum, { answer }) => sumOf(sum, answer), spent);
    casts = [...casts, ...made.map(({ cast }) => cast)];
  }
}

async function castOf(skill: PreparedSkill, voter: number) {
  const { deps, call, question, schema } = skill;
  const voting = deps.voting();
  const { temperature } = voting;
  const answer = await askSkill(skill, question, { role: 'vote', temperature });
  const cast = { voter, ...readBallot(answer, schema, voting) };
  const isKept = await call.keep(cast, { tokens: answer.tokens, micros: answer.micros ?? 0 });
  return { cast, answer, isKept };
}

function readBallot(
  { text, isCut }: SkillAnswer,
  schema: PreparedSkill['schema'],
  { maxAnswerChars }: VotingConfig,
): Omit<Cast, 'voter'> {
  const flagged = (flag: Extract<Ballot, { kind: 'flagged' }>['flag']) => ({
    ballot: { kind: 'flagged', flag } as const,
  });
  if (text.trim() === '') return flagged('empty');
  if (isCut || text.length > maxAnswerChars) return flagged('too long');
  const read = readAnswer(text, schema);
  if (read.kind === 'no fit') return flagged('malformed');
  return { ballot: { kind: 'vote', key: valueKey(read.value) }, value: read.value };
}

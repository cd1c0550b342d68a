// One call of a declared specialist: it sees the question, its instruction and what it did for it so far, and
// either calls tools of its own or writes its result. What it calls is run by the turn, like any call.

import { repairThread } from '../../agent/rules/thread-repair.ts';
import { messagesTokens } from '../../agent/rules/tokens.ts';
import { tokensSpent } from '../../agent/rules/turn-closing.ts';
import type { NonEmpty } from '../../agent/rules/turn-state.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import type { ModelMessage, ToolCall } from '../../kernel/message/transcript.ts';
import type { ModelRegistry, ToolSpec } from '../../providers/provider.ts';
import { askHeld, askRole, marked, type RoleCall, speakerOf, writtenBy } from './ask-role.ts';
import type { CueCall, Speaker } from './mode.ts';
import type { ModeTurn } from './modes.ts';
import type { RoleHealth, RoleModel } from './role-health.ts';
import type { DeclaredAgent } from './rules/declared-agent.ts';
import { NOT_OFFERED, type SupervisedTask, type SupervisedTurn } from './rules/supervised-turn.ts';
import { specialistQuestion, specialistSystem, WRITE_NOW } from './rules/supervisor-prompts.ts';

export type Work = {
  readonly agent: DeclaredAgent;
  readonly who: RoleModel;
  readonly health: RoleHealth;
  readonly state: SupervisedTurn;
  readonly task: SupervisedTask;
  /** Milliseconds of the turn since it was handed the task. */
  readonly elapsedMs: number;
  /** It has no more calls of tools. */
  readonly mustWrite: boolean;
  /** Called once it was asked to correct its text; left out: it was before. */
  readonly doubted?: () => void;
};

export type Worked =
  | { readonly kind: 'calls'; readonly by: Speaker; readonly calls: NonEmpty<CueCall> }
  | { readonly kind: 'done'; readonly by: Speaker; readonly text: string }
  | { readonly kind: 'failed'; readonly by: Speaker };

/** For the result of one whose time is up. */
const LAST_CALL_MS = 60_000;
/** Of a model's window: beyond it no tool result would fit. */
const WINDOW_SHARE = 0.6;

/** `main`: the model of the conversation. */
export function roleOf(
  { name, model }: DeclaredAgent,
  models: Pick<ModelRegistry, 'fast'>,
  main: string,
): RoleModel {
  const named = model === 'main' ? main : model === 'fast' ? models.fast(main) : model;
  return { role: `specialist:${name}`, model: named };
}

/** @throws SpendingRefusedError, or the reason of the signal */
export async function workOn(turn: ModeTurn, work: Work, signal: AbortSignal): Promise<Worked> {
  const { agent, who, health } = work;
  const by: Speaker = { model: who.model };
  const contextTokens = health.isResting(who) ? undefined : windowOf(turn, who);
  if (contextTokens === undefined) return { kind: 'failed', by };
  const mayUse = (name: string) => agent.tools.includes(name);
  const { specs } = turn.toolbox.offered(turn.rights.current, mayUse);
  const messages = messagesOf(turn, work);
  const isFull = messagesTokens(messages) > contextTokens * WINDOW_SHARE;
  const mustWrite = work.mustWrite || isFull || isSpent(work);
  const call = callOf(turn, work, { specs, messages, mustWrite });
  const asked = await ask(turn, work, call, signal);
  if (asked.kind === 'failed') return { kind: 'failed', by };
  const { answer } = asked;
  const speaker = speakerOf(answer);
  const [first, ...rest] = mustWrite ? [] : answer.toolCalls;
  if (first !== undefined) {
    asked.judge(true);
    const checked = (each: ToolCall) => offeredCall(turn, specs, each);
    return { kind: 'calls', by: speaker, calls: [checked(first), ...rest.map(checked)] };
  }
  const { text } = writtenBy(asked);
  return text === '' ? { kind: 'failed', by: speaker } : { kind: 'done', by: speaker, text };
}

/** A text that goes to the person as it is, is held against what was done; once for a task. */
async function ask(turn: ModeTurn, work: Work, call: RoleCall, signal: AbortSignal) {
  const { agent, doubted } = work;
  if (agent.output !== 'verbatim' || doubted === undefined)
    return askRole(turn, work, call, signal);
  const held = await askHeld(turn, work, call, signal);
  if (held.wasDoubted === true) doubted();
  return held;
}

/** The question, and behind it what was done for the task so far. */
function messagesOf(turn: ModeTurn, { state, task }: Work, note?: string) {
  const own = { role: 'user', turnId: turn.input.turnId, at: 0 } as const;
  const question = { ...own, text: specialistQuestion(state, marked) };
  const last = note === undefined ? [] : [{ ...own, text: note }];
  return repairThread([question, ...task.work, ...last]);
}

/** Undefined where nobody serves the model it is declared with. */
function windowOf({ models, log }: ModeTurn, who: RoleModel): number | undefined {
  try {
    return models.resolve(who.model, 'once').contextTokens;
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    log.warn('a specialist has no model', { ...who, error });
    return undefined;
  }
}

function isSpent({ agent: { limits }, task, elapsedMs }: Work): boolean {
  const rounds = task.work.filter(({ role }) => role === 'assistant').length;
  return (
    rounds >= limits.rounds ||
    tokensSpent(task.work) >= limits.tokens ||
    elapsedMs >= limits.seconds * 1000
  );
}

type Asking = {
  readonly specs: readonly ToolSpec[];
  readonly messages: readonly ModelMessage[];
  readonly mustWrite: boolean;
};

function callOf(turn: ModeTurn, work: Work, { specs, messages, mustWrite }: Asking): RoleCall {
  const { agent, task, elapsedMs } = work;
  const { limits, temperature, instructions } = agent;
  const leftMs = limits.seconds * 1000 - elapsedMs;
  // Services refuse a thread that holds calls where no tool is described.
  const hasCalls = task.work.some(({ role }) => role === 'tool');
  const about = { system: specialistSystem(instructions), temperature };
  const common = { ...about, maxTokens: limits.answerTokens };
  if (!mustWrite) return { ...common, messages, tools: specs, timeoutMs: leftMs };
  const timeoutMs = Math.max(leftMs, LAST_CALL_MS);
  if (!hasCalls) return { ...common, messages, tools: [], timeoutMs };
  const told = messagesOf(turn, work, WRITE_NOW);
  return { ...common, messages: told, tools: specs, toolChoice: 'none', timeoutMs };
}

/** A call of a tool that is not among its own is recorded as such, and refused. */
function offeredCall(
  { toolbox }: ModeTurn,
  specs: readonly ToolSpec[],
  { name, arguments: json }: ToolCall,
): CueCall {
  const known = toolbox.bind(name, json).name;
  if (specs.some((spec) => spec.name === known)) return { name, arguments: json };
  return { name: NOT_OFFERED, arguments: JSON.stringify({ tool: name.slice(0, 64) }) };
}

// Calls a model that shares the work of a turn: once, with a deadline, charged to the payer of the
// turn. Records its work as calls that are not tools, and their results.

import { SpendingRefusedError } from '../../agent/agent.ts';
import { repairThread } from '../../agent/rules/thread-repair.ts';
import { messagesTokens, textTokens } from '../../agent/rules/tokens.ts';
import { tokensSpent } from '../../agent/rules/turn-closing.ts';
import type { NonEmpty } from '../../agent/rules/turn-state.ts';
import { unknownTool } from '../../agent/settings.ts';
import { chargedMeter, wholeAnswer } from '../../agent/side-model.ts';
import { cutAnswer, waitingNotice } from '../../agent/stream.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import type { ModelMessage, TokenUsage, ToolCall } from '../../kernel/message/transcript.ts';
import { wrapUntrusted } from '../../kernel/message/untrusted.ts';
import { newBoundary } from '../../lib/boundary.ts';
import { shortened, withFenceClosed } from '../../lib/text/cut.ts';
import type {
  ModelEvent,
  ModelRegistry,
  ModelRequest,
  ToolSpec,
} from '../../providers/provider.ts';
import type { BoundCall, Toolbox, ToolContext, ToolOutcome } from '../../tools/tool.ts';
import { claimsUndone, correctionNote, loopWatch } from '../steadiness/index.ts';
import type { CueCall, Speaker } from './mode.ts';
import type { ModeTurn } from './modes.ts';
import type { RoleHealth, RoleModel } from './role-health.ts';
import type { DeclaredAgent } from './rules/declared-agent.ts';
import { NOT_OFFERED, type SupervisedTask, type SupervisedTurn } from './rules/supervised-turn.ts';
import { specialistQuestion, specialistSystem, WRITE_NOW } from './rules/supervisor-prompts.ts';

export type RoleCall = Pick<ModelRequest, 'messages' | 'tools' | 'toolChoice' | 'maxTokens'> & {
  readonly system: string;
  readonly temperature: number;
  readonly timeoutMs: number;
};

export type RoleAnswer = Extract<ModelEvent, { readonly type: 'finished' }>;

class RoleLate extends Error {
  override readonly name = 'RoleLate';
}

type AskedRole =
  | {
      readonly kind: 'answered';
      readonly answer: RoleAnswer;
      /** Records in its health whether the answer was usable; true: its breaker is open now. */
      judge(isUsable: boolean): boolean;
    }
  /** `isOut`: its breaker is open now. */
  | { readonly kind: 'failed'; readonly isOut: boolean };

type Asked = { readonly health: RoleHealth; readonly who: RoleModel };

/**
 * An answer that the caller does not judge does not affect the health. In a local-only conversation
 * a cloud model fails without affecting its health.
 * @throws SpendingRefusedError, or the reason of the signal
 */
export async function askRole(
  turn: ModeTurn,
  { health, who }: Asked,
  call: RoleCall,
  signal: AbortSignal,
): Promise<AskedRole> {
  const payer = payerOf(turn);
  try {
    const answer = await answerOf(turn, who, call, signal);
    return {
      kind: 'answered',
      answer,
      judge(isUsable) {
        if (!isUsable) return health.failed(who, payer, 'useless');
        health.succeeded(who, payer);
        return false;
      },
    };
  } catch (error) {
    signal.throwIfAborted();
    if (mustStayLocal(error)) return { kind: 'failed', isOut: false };
    if (!(error instanceof ProviderError || error instanceof RoleLate)) throw error;
    turn.log.warn('model of a mode failed', { ...who, error });
    return { kind: 'failed', isOut: health.failed(who, payer, 'silent') };
  } finally {
    turn.time.goOn();
  }
}

const mustStayLocal = (error: unknown) =>
  error instanceof SpendingRefusedError && error.because === 'local_only';

const payerOf = ({ input }: ModeTurn) => input.messages[0].message;

async function answerOf(
  turn: ModeTurn,
  { role, model }: RoleModel,
  { system, timeoutMs, ...asked }: RoleCall,
  signal: AbortSignal,
): Promise<RoleAnswer> {
  const { messages, tools, maxTokens } = asked;
  const request = { ...asked, system: [{ text: system, stable: true }] };
  const inputTokens = () =>
    textTokens(system) + messagesTokens(messages) + textTokens(JSON.stringify(tools));
  const { turnId } = turn.input;
  const metered = { role, turnId, maxTokens, inputTokens };
  const meter = chargedMeter(turn.spending, payerOf(turn), metered);
  const handle = turn.models.resolve(model, 'once');
  const watch = loopWatch(turn, handle);
  const look = (event: ModelEvent) => {
    // Waiting for a slot of a local server counts neither for the call nor for the turn.
    const isWaiting = event.type === 'waiting' && event.ahead > 0;
    if (isWaiting) turn.notices.tell(waitingNotice(event));
    isWaiting ? turn.time.standStill() : turn.time.goOn();
    if (event.type === 'finished') turn.shared.add({ role, ...speakerOf(event) });
    if (event.type === 'retrying') watch?.restart();
    const isPiece = event.type === 'text' || event.type === 'thinking';
    // The text so far is the answer; the caller decides about a retry.
    const isLoop = isPiece && watch?.isLooping(event.type, event.delta) === true;
    return isLoop ? cutAnswer({ handle }, watch) : undefined;
  };
  const terms = { clock: turn.clock, maxMs: timeoutMs, late: () => new RoleLate(), look };
  return wholeAnswer(handle, { request, meter, ...terms }, signal);
}

export const speakerOf = ({ model, usage }: RoleAnswer): Speaker =>
  usage === undefined ? { model } : { model, usage };

/** The limits of one call, as configured for a role. */
export const callTerms = (role: {
  readonly maxTokens: number;
  readonly temperature: number;
  readonly timeoutSecs: number;
}) => ({
  maxTokens: role.maxTokens,
  temperature: role.temperature,
  timeoutMs: role.timeoutSecs * 1000,
});

/** The model of the session. */
export const mainModelOf = ({ input, models }: Pick<ModeTurn, 'input' | 'models'>) =>
  input.settings.model ?? models.defaultModel;

// Asks a model for a text that goes to the person unchanged: where it claims what no tool did, the
// model is asked once to correct it, like the main model. The text is not edited here.

type Held = AskedRole & {
  /** It was asked to correct its text; the usage of the answer covers both calls. */
  readonly wasDoubted?: true;
};

/** @throws as `askRole` */
export async function askHeld(
  turn: ModeTurn,
  asking: Asked,
  call: RoleCall,
  signal: AbortSignal,
): Promise<Held> {
  const first = await askRole(turn, asking, call, signal);
  if (first.kind === 'failed' || first.answer.toolCalls.length > 0) return first;
  const { text, usage } = first.answer;
  const sentences = claimsUndone(turn, first.answer, text);
  if (sentences.length === 0) return first;
  const mayAct = call.tools.length > 0 && call.toolChoice === undefined;
  const messages = [
    ...call.messages,
    { role: 'assistant', text, toolCalls: [], thinking: [] },
    { role: 'user', text: correctionNote(sentences, mayAct) },
  ] as const;
  try {
    const again = await askRole(turn, asking, { ...call, messages }, signal);
    if (again.kind === 'failed') return { ...again, wasDoubted: true };
    const both = sumOf(usage, again.answer.usage);
    const answer = both === undefined ? again.answer : { ...again.answer, usage: both };
    return { ...again, answer, wasDoubted: true };
  } catch (error) {
    if (!(error instanceof SpendingRefusedError)) throw error;
    // The budget allows no second call: the first answer is used.
    return { ...first, wasDoubted: true };
  }
}

function sumOf(one: TokenUsage | undefined, other: TokenUsage | undefined) {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cachedTokens: one.cachedTokens + other.cachedTokens,
  };
}

const CUT_OFF = '[Cut at the length limit.]';

/**
 * The verbatim text, judged: an empty text is useless; a refusal is empty too, but is not judged.
 */
export function writtenBy({ answer, judge }: Extract<AskedRole, { readonly kind: 'answered' }>): {
  readonly text: string;
  readonly isOut: boolean;
} {
  if (answer.stop === 'refused') return { text: '', isOut: false };
  const text = answer.text.replace(/^(?:[^\S\n]*\n)+/, '').trimEnd();
  const isOut = judge(text !== '');
  if (text === '' || answer.stop !== 'length') return { text, isOut };
  return { text: `${withFenceClosed(text)}\n\n${CUT_OFF}`, isOut };
}

/** Marks a text as untrusted. */
export const marked = (what: string, text: string) =>
  wrapUntrusted(what, [{ text }], newBoundary());

/** A specialist's text as the result of a call: cut, and untrusted in a tainted turn. */
export function handedBack(
  { settings, thread }: ModeTurn,
  from: string,
  written: string,
): ToolOutcome {
  const text = shortened(written, settings.maxResultChars);
  if (!thread.isTainted) return { status: 'ok', text };
  const about = `from ${from}, which read untrusted content`;
  return { status: 'ok', text: marked(about, text), isForeign: true };
}

/** The action of a call that is not a tool, or the name of a tool that the model does not have. */
type OwnCall =
  | { readonly detail: string; run(context: ToolContext): Promise<ToolOutcome> }
  | string;

/**
 * Adds calls of the mode itself to the tools of the turn; they are recorded and executed like
 * tools.
 */
export function withOwnCalls(
  toolbox: Toolbox,
  calls: Readonly<Record<string, (json: string) => OwnCall>>,
): Toolbox {
  return {
    ...toolbox,
    bind(name, json): BoundCall {
      const read = Object.hasOwn(calls, name) ? calls[name] : undefined;
      if (read === undefined) return toolbox.bind(name, json);
      const own = read(json);
      if (typeof own === 'string') return { kind: 'refused', name, outcome: unknownTool(own) };
      const fixed = { access: 'read', reach: 'machine', isPosted: false, url: undefined } as const;
      const more = { accessIn: () => 'read' as const, seal: async () => undefined };
      return { kind: 'ready', name, ...fixed, ...more, arguments: json, ...own };
    },
  };
}

// One call of a declared specialist: it gets the question, its instruction and its work so far, and
// either calls tools of its own or writes its result. The turn executes its calls.

export type Work = {
  readonly agent: DeclaredAgent;
  readonly who: RoleModel;
  readonly health: RoleHealth;
  readonly state: SupervisedTurn;
  readonly task: SupervisedTask;
  /** Milliseconds of the turn since it got the task. */
  readonly elapsedMs: number;
  /** It may not call tools any more. */
  readonly mustWrite: boolean;
  /** Called when it was asked to correct its text; left out: it was asked before. */
  readonly doubted?: () => void;
};

export type Worked =
  | { readonly kind: 'calls'; readonly by: Speaker; readonly calls: NonEmpty<CueCall> }
  | { readonly kind: 'done'; readonly by: Speaker; readonly text: string }
  | { readonly kind: 'failed'; readonly by: Speaker };

/** For the result of a specialist whose time is up. */
const LAST_CALL_MS = 60_000;
/** Share of a model's context window; beyond it no tool result would fit. */
const WINDOW_SHARE = 0.6;

/** `main`: the model of the session. */
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

/** A verbatim output is checked against what was done; once per task. */
async function ask(turn: ModeTurn, work: Work, call: RoleCall, signal: AbortSignal) {
  const { agent, doubted } = work;
  if (agent.output !== 'verbatim' || doubted === undefined)
    return askRole(turn, work, call, signal);
  const held = await askHeld(turn, work, call, signal);
  if (held.wasDoubted === true) doubted();
  return held;
}

/** The question, followed by the work on the task so far. */
function messagesOf(turn: ModeTurn, { state, task }: Work, note?: string) {
  const own = { role: 'user', turnId: turn.input.turnId, at: 0 } as const;
  const question = { ...own, text: specialistQuestion(state, marked) };
  const last = note === undefined ? [] : [{ ...own, text: note }];
  return repairThread([question, ...task.work, ...last]);
}

/** Undefined where no vendor serves the declared model. */
function windowOf({ models, log }: ModeTurn, who: RoleModel): number | undefined {
  try {
    return models.resolve(who.model, 'once').contextTokens;
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    log.warn('specialist without a model', { ...who, error });
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
  // Providers reject a thread with calls if no tool is described.
  const hasCalls = task.work.some(({ role }) => role === 'tool');
  const about = { system: specialistSystem(instructions), temperature };
  const common = { ...about, maxTokens: limits.answerTokens };
  if (!mustWrite) return { ...common, messages, tools: specs, timeoutMs: leftMs };
  const timeoutMs = Math.max(leftMs, LAST_CALL_MS);
  if (!hasCalls) return { ...common, messages, tools: [], timeoutMs };
  const told = messagesOf(turn, work, WRITE_NOW);
  return { ...common, messages: told, tools: specs, toolChoice: 'none', timeoutMs };
}

/** A call of a tool that the specialist was not given is recorded as such, and refused. */
function offeredCall(
  { toolbox }: ModeTurn,
  specs: readonly ToolSpec[],
  { name, arguments: json }: ToolCall,
): CueCall {
  const known = toolbox.bind(name, json).name;
  if (specs.some((spec) => spec.name === known)) return { name, arguments: json };
  return { name: NOT_OFFERED, arguments: JSON.stringify({ tool: name.slice(0, 64) }) };
}

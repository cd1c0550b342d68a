// The specialist: no tool, but called like one, so that its task and its result are recorded and a crash
// costs nothing. It has no tools itself; what it makes of words of others stays words of others.

import { z } from 'zod';
import {
  specialistDirective,
  specialistMemory,
  specialistTask,
  type Wrap,
} from '../../agent/rules/context-pack.ts';
import { repairThread } from '../../agent/rules/thread-repair.ts';
import { messagesTokens } from '../../agent/rules/tokens.ts';
import { tokensSpent } from '../../agent/rules/turn-closing.ts';
import type { NonEmpty } from '../../agent/rules/turn-state.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import type { ModelMessage, ToolCall } from '../../kernel/message/transcript.ts';
import { wrapUntrusted } from '../../kernel/message/untrusted.ts';
import { newBoundary } from '../../lib/boundary.ts';
import { parseJson } from '../../lib/json/json.ts';
import { shortened } from '../../lib/text/cut.ts';
import type { ToolSpec } from '../../providers/provider.ts';
import type { BoundCall, Toolbox, ToolContext, ToolOutcome } from '../../tools/tool.ts';
import { askHeld, askRole, payerOf, type RoleCall } from './ask-role.ts';
import type { CueCall, Speaker } from './mode.ts';
import type { TrioDeps } from './mode-deps.ts';
import type { ModeTurn } from './modes.ts';
import type { RoleHealth, RoleModel } from './role-health.ts';
import { writtenBy } from './role-probes.ts';
import type { DeclaredAgent } from './rules/declared-agent.ts';
import { SPECIALIST } from './rules/route-decision.ts';
import type { SupervisedTask, SupervisedTurn } from './rules/supervised-turn.ts';
import { specialistQuestion, specialistSystem, WRITE_NOW } from './rules/supervisor-prompts.ts';
import { NOT_OFFERED } from './supervisor-finish.ts';
import { type MarkForeign, speakerOf } from './supervisor-words.ts';
import { MAX_ASKED_CHARS, MAX_OUTCOME_CHARS } from './trace.ts';

const input = z.strictObject({ domain: z.string().max(200), task: z.string().min(1).max(20_000) });
type Input = z.infer<typeof input>;

const DETAIL_CHARS = 60;
const NOT_ANSWERED = 'Error (execution): the specialist did not answer. Go on without it.';
const NOT_CALLED_SO: BoundCall = {
  kind: 'refused',
  name: SPECIALIST,
  outcome: {
    status: 'failed',
    text: 'Error (unknown tool): you have no tool specialist. Use those you were given.',
    failure: 'unknown_tool',
  },
};

/** The tools of the turn, with the specialist behind the name it is recorded by. */
export function specialistToolbox(turn: ModeTurn, deps: TrioDeps): Toolbox {
  const { toolbox } = turn;
  const wrap: Wrap = (what, text) => wrapUntrusted(what, [{ text }], newBoundary());

  async function run(asked: Input, { signal }: ToolContext): Promise<ToolOutcome> {
    const { specialist, synthesis } = deps.settings();
    const { domain, task } = asked;
    const { clock, prepared, thread, settings } = turn;
    const who = { role: SPECIALIST, model: specialist.model } as const;
    const started = clock.monotonic();
    const memory = specialistMemory(prepared.history, domain);
    const call = {
      system: specialistDirective(domain, memory, wrap),
      messages: [{ role: 'user', text: specialistTask(task, thread.own, wrap) }] as const,
      tools: [],
      maxTokens: specialist.maxTokens,
      temperature: specialist.temperature,
      timeoutMs: specialist.timeoutSecs * 1000,
    };
    // Without synthesis its words go to the person as they are.
    const ask = synthesis ? askRole : askHeld;
    const answer = await ask(turn, { ...deps, who }, call, signal);
    const text = answer.kind === 'answered' ? writtenBy(answer.answer).trim() : '';
    trace(turn, deps, { ...asked, model: who.model, text, started });
    if (answer.kind === 'failed') return failed();
    if (text === '') {
      if (answer.answer.stop !== 'refused') deps.health.failed(who, payerOf(turn), 'useless');
      return failed();
    }
    deps.health.succeeded(who, payerOf(turn));
    const shown = shortened(text, settings.maxResultChars);
    const whole = shown === text ? {} : { whole: text };
    if (!thread.isTainted) return { status: 'ok', text: shown, ...whole };
    const wrapped = wrap('from the specialist, who read words of others', shown);
    return { status: 'ok', text: wrapped, isForeign: true, ...whole };
  }

  return {
    ...toolbox,
    bind(name, json) {
      if (name !== SPECIALIST) return toolbox.bind(name, json);
      const read = input.safeParse(parseJson(json));
      return read.success
        ? boundCall(read.data, (context) => run(read.data, context))
        : NOT_CALLED_SO;
    },
  };
}

const failed = (): ToolOutcome => ({ status: 'failed', text: NOT_ANSWERED, failure: 'execution' });

function boundCall(asked: Input, run: (context: ToolContext) => Promise<ToolOutcome>): BoundCall {
  return {
    kind: 'ready',
    name: SPECIALIST,
    access: 'read',
    accessIn: () => 'read',
    isPosted: false,
    url: undefined,
    arguments: JSON.stringify(asked),
    detail: `${asked.domain}: ${shortened(asked.task, DETAIL_CHARS)}`,
    seal: async () => undefined,
    run,
  };
}

type Dispatched = Input & {
  readonly model: string;
  readonly text: string;
  readonly started: number;
};

function trace(turn: ModeTurn, deps: TrioDeps, done: Dispatched): void {
  const { input: about, clock } = turn;
  deps.trace({
    kind: 'specialist',
    at: clock.now(),
    session: about.session,
    turnId: about.turnId,
    model: done.model,
    durationMs: Math.round(clock.monotonic() - done.started),
    domain: done.domain,
    asked: shortened(done.task, MAX_ASKED_CHARS),
    outcome: shortened(done.text, MAX_OUTCOME_CHARS),
  });
}

// One call of a declared specialist: it sees the question, its instruction and what it did for it so far, and
// either calls tools of its own or writes its result. What it calls is run by the turn, like any call.

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
  readonly wrap: MarkForeign;
  /** Called once it was asked to correct its words; left out: it was before. */
  readonly doubted?: () => void;
};

export type Worked =
  | { readonly kind: 'calls'; readonly by: Speaker; readonly calls: NonEmpty<CueCall> }
  | { readonly kind: 'done'; readonly by: Speaker; readonly text: string }
  | { readonly kind: 'failed'; readonly by: Speaker };

/** For the last words of one whose time is up. */
const LAST_CALL_MS = 60_000;
/** Of a model's window: beyond it no tool result would fit. */
const WINDOW_SHARE = 0.6;

/** @throws SpendingRefusedError, or the reason of the signal */
export async function workOn(turn: ModeTurn, work: Work, signal: AbortSignal): Promise<Worked> {
  const { agent, who, health } = work;
  const by: Speaker = { model: who.model };
  if (health.isResting(who)) return { kind: 'failed', by };
  const specs = turn.toolbox.offered(turn.rights.current, (name) =>
    agent.tools.includes(name),
  ).specs;
  const messages = messagesOf(turn, work);
  const contextTokens = windowOf(turn, who);
  if (contextTokens === undefined) return { kind: 'failed', by };
  const isFull = messagesTokens(messages) > contextTokens * WINDOW_SHARE;
  const mustWrite = work.mustWrite || isFull || isSpent(work);
  const call = callOf(turn, work, { specs, messages, mustWrite });
  const asked = await ask(turn, work, call, signal);
  if (asked.kind === 'failed') return { kind: 'failed', by };
  const { answer } = asked;
  const speaker = speakerOf(answer);
  const [first, ...rest] = mustWrite ? [] : answer.toolCalls;
  if (first !== undefined) {
    health.succeeded(who, payerOf(turn));
    const checked = (each: ToolCall) => offeredCall(turn, specs, each);
    return { kind: 'calls', by: speaker, calls: [checked(first), ...rest.map(checked)] };
  }
  const text = writtenBy(answer);
  if (text === '') {
    if (answer.stop !== 'refused') health.failed(who, payerOf(turn), 'useless');
    return { kind: 'failed', by: speaker };
  }
  health.succeeded(who, payerOf(turn));
  return { kind: 'done', by: speaker, text };
}

/** What goes to the person as it is, is held against what was done; once for a task. */
async function ask(turn: ModeTurn, work: Work, call: RoleCall, signal: AbortSignal) {
  const { agent, doubted } = work;
  if (agent.output !== 'verbatim' || doubted === undefined)
    return askRole(turn, work, call, signal);
  const held = await askHeld(turn, work, call, signal);
  if (held.wasDoubted === true) doubted();
  return held;
}

/** The question, and behind it what was done for the task so far. */
function messagesOf(turn: ModeTurn, { state, task, wrap }: Work, note?: string) {
  const own = { role: 'user', turnId: turn.input.turnId, at: 0 } as const;
  const question = { ...own, text: specialistQuestion(state, wrap) };
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

/** What is not among its tools is recorded as that, and refused. */
function offeredCall(
  { toolbox }: ModeTurn,
  specs: readonly ToolSpec[],
  { name, arguments: json }: ToolCall,
): CueCall {
  const known = toolbox.bind(name, json).name;
  if (specs.some((spec) => spec.name === known)) return { name, arguments: json };
  return { name: NOT_OFFERED, arguments: JSON.stringify({ tool: name.slice(0, 64) }) };
}

// One turn of the supervisor. Before each step the shared state is derived from the recorded
// entries of the turn: a specialist with a task continues, otherwise the supervisor decides, until
// it finishes.

import { z } from 'zod';
import type { CallReport } from '../../agent/rules/turn-closing.ts';
import type { Ask } from '../../agent/rules/turn-state.ts';
import { tokensOf } from '../../agent/take-answer.ts';
import type { ResultId } from '../../kernel/message/ids.ts';
import type { AgentEvent } from '../../kernel/message/message.ts';
import { unwrapped } from '../../kernel/message/untrusted.ts';
import { storedTurn } from '../../kernel/turns/origins.ts';
import { parseJson } from '../../lib/json/json.ts';
import { shortened } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { Toolbox, ToolContext, ToolOutcome } from '../../tools/tool.ts';
import { claimsUndone } from '../steadiness/index.ts';
import type { AgentRoster } from './agent-files.ts';
import {
  askHeld,
  askRole,
  callTerms,
  handedBack,
  mainModelOf,
  marked,
  roleOf,
  speakerOf,
  type Worked,
  withOwnCalls,
  workOn,
} from './ask-role.ts';
import {
  type Answer,
  type Cue,
  type Main,
  type Speaker,
  type TurnMode,
  WITH_TOOLS,
} from './mode.ts';
import type { ModeDeps, ModeTurn } from './modes.ts';
import { sinceAsked } from './record-cue.ts';
import { degradedNotice, type RoleHealth, type RoleModel } from './role-health.ts';
import type { DeclaredAgent } from './rules/declared-agent.ts';
import {
  type AgentResponse,
  argumentIn,
  composedAnswer,
  NOT_OFFERED,
  REPORT,
  type SupervisedTask,
  type SupervisedTurn,
  supervisedTurn,
  TASK,
} from './rules/supervised-turn.ts';
import {
  framingQuestion,
  framingSystem,
  readMove,
  supervisorQuestion,
  supervisorSystem,
  writingNote,
} from './rules/supervisor-prompts.ts';
import type { SupervisorConfig } from './settings.ts';

/** With fewer rounds left in the turn, only the current task is completed. */
const LAST_ROUNDS = 2;
const DETAIL_CHARS = 100;
const NO_RESULT: ToolOutcome = {
  status: 'failed',
  text: t`Error (execution): the specialist gave no result.`,
  failure: 'execution',
};
/** Reasons to finish that show that the supervisor does not follow its instructions. */
const USELESS: readonly string[] = ['unreadable', 'unknown'];

const report = z.object({ agent: z.string(), task: z.int() });

type Decided =
  | { readonly move: ReturnType<typeof readMove>; readonly by?: Speaker; readonly tokens: number }
  /** No response; `isOut`: its breaker is open now. */
  | { readonly move: undefined; readonly isOut: boolean };

export class SupervisorTurn implements TurnMode {
  readonly toolbox: Toolbox;
  readonly #turn: ModeTurn;
  readonly #deps: ModeDeps;
  readonly #settings: SupervisorConfig;
  readonly #roster: AgentRoster;
  readonly #agents: readonly DeclaredAgent[];
  readonly #who: RoleModel;
  /** Start of each task in this process, by its place; milliseconds of the turn. */
  readonly #begun = new Map<number, number>();
  /** Places of tasks whose specialist was asked to correct its text. */
  readonly #doubted = new Set<number>();
  /** Verbatim texts of specialists, by the place of the task. */
  readonly #written = new Map<number, Exclude<Worked, { readonly kind: 'calls' }>>();

  constructor(turn: ModeTurn, deps: ModeDeps, roster: AgentRoster) {
    this.#turn = turn;
    this.#deps = deps;
    this.#settings = deps.settings().supervisor;
    this.#roster = roster;
    this.#agents = roster.agents.flatMap((each) => (each.kind === 'valid' ? [each.value] : []));
    this.#who = { role: 'supervisor', model: this.#settings.model || mainModelOf(turn) };
    this.toolbox = withOwnCalls(turn.toolbox, {
      [NOT_OFFERED]: (json) => argumentIn(json, 'tool') || t`of this name`,
      [TASK]: taskCall,
      [REPORT]: (json) => {
        const read = report.safeParse(parseJson(json));
        const run = ({ signal }: ToolContext) => this.#report(signal);
        return read.success ? { detail: read.data.agent, run } : REPORT;
      },
    });
  }

  async *cue(ask: Ask, signal: AbortSignal): AsyncGenerator<AgentEvent, Cue, void> {
    const state = this.#state();
    const clear = this.#clear(ask, state);
    if (clear !== undefined) return clear;
    const { task } = state;
    const isLast = ask.kind === 'work' && (ask.remainingRounds ?? Infinity) <= LAST_ROUNDS;
    const { notices, log } = this.#turn;
    if (task !== undefined) return yield* notices.during(this.#goOn(state, task, isLast, signal));
    const left = isLast ? 0 : this.#settings.maxSteps - state.made.length;
    const decided = yield* notices.during(this.#decide(state, left, signal));
    if (decided.move === undefined) {
      if (decided.isOut) yield notices.lasting(degradedNotice(this.#who));
      return yield* finishCue(this.#finishing(state), 0, signal);
    }
    const { move, by, tokens } = decided;
    if (move.kind !== 'finish' && by !== undefined) {
      const { kind, ...args } = move;
      const json = JSON.stringify(kind === 'task' ? args : { query: move.query });
      const name = move.kind === 'task' ? TASK : move.service;
      return { kind: 'calls', by, calls: [{ name, arguments: json }] };
    }
    const why = move.kind === 'finish' ? move.why : 'decided';
    if (why !== 'decided') log.warn('supervisor stopped', { why });
    return yield* finishCue(this.#finishing(state), tokens, signal);
  }

  /** The verbatim outputs, unless the main model has taken the work over. */
  async closing() {
    if (sinceAsked(this.#turn.thread.own).isMainAtWork) return undefined;
    return closingCue(this.#finishing(this.#state()));
  }

  /** Adds to the record of an output what its text does not contain. */
  async shown(call: { readonly name: string }, result: CallReport): Promise<CallReport> {
    const { task } = this.#state();
    const written = task === undefined ? undefined : this.#written.get(task.place);
    if (call.name !== REPORT || written?.kind !== 'done') return result;
    const isExact = result.status !== 'ok' || result.text === written.text;
    return isExact ? result : { ...result, whole: written.text };
  }

  #state(): SupervisedTurn {
    return supervisedTurn(this.#turn.thread.own, this.#settings.services);
  }

  /** What follows without a decision of the supervisor. */
  #clear(ask: Ask, state: SupervisedTurn): Cue | undefined {
    const { isMainAtWork, afterQuestion } = sinceAsked(this.#turn.thread.own);
    if (isMainAtWork) return WITH_TOOLS;
    const nobody = state.responses.length + state.messages.length === 0;
    if (ask.kind !== 'work') return nobody ? WITH_TOOLS : writingCue(this.#roster);
    return afterQuestion;
  }

  /** Asks the supervisor for the next step: structured output, without any tool. */
  async #decide(state: SupervisedTurn, left: number, signal: AbortSignal): Promise<Decided> {
    if (left <= 0) return { move: { kind: 'finish', why: 'steps' }, tokens: 0 };
    const { health } = this.#deps;
    if (health.isResting(this.#who)) return { move: undefined, isOut: false };
    const { rights, toolbox, prepared } = this.#turn;
    const offered = toolbox.offered(rights.current).specs.map(({ name }) => name);
    const services = this.#settings.services.filter((service) => offered.includes(service));
    const resting = this.#agents.filter((agent) => health.isResting(this.#roleOf(agent)));
    const awake = this.#agents.filter((agent) => !resting.includes(agent));
    const text = supervisorQuestion(state, prepared.history, { left }, marked);
    const call = {
      ...callTerms(this.#settings),
      system: supervisorSystem(this.#roster.supervisor, { agents: awake, services }),
      messages: [{ role: 'user', text }] as const,
      tools: [],
    };
    const asked = await askRole(this.#turn, { health, who: this.#who }, call, signal);
    if (asked.kind === 'failed') return { move: undefined, isOut: asked.isOut };
    const { answer } = asked;
    const agents = this.#agents.map(({ name }) => name);
    const move = readMove(answer.text, state, { agents, services });
    asked.judge(move.kind !== 'finish' || !USELESS.includes(move.why));
    return { move, by: speakerOf(answer), tokens: tokensOf(answer) };
  }

  #roleOf(agent: DeclaredAgent) {
    return roleOf(agent, this.#turn.models, mainModelOf(this.#turn));
  }

  #finishing(state: SupervisedTurn) {
    const exact = (place: number) => {
      const written = this.#written.get(place);
      return written?.kind === 'done' ? written.text : undefined;
    };
    const { health } = this.#deps;
    return { turn: this.#turn, health, state, roster: this.#roster, exact };
  }

  /** The specialist calls its tools, or reports its result. */
  async #goOn(
    state: SupervisedTurn,
    task: SupervisedTask,
    mustWrite: boolean,
    signal: AbortSignal,
  ): Promise<Cue> {
    const worked = await this.#work(state, task, mustWrite, signal);
    if (worked.kind === 'calls') return worked;
    this.#written.set(task.place, worked);
    const json = JSON.stringify({ agent: shortened(task.agent, DETAIL_CHARS), task: task.place });
    return { kind: 'calls', by: worked.by, calls: [{ name: REPORT, arguments: json }] };
  }

  async #work(
    state: SupervisedTurn,
    task: SupervisedTask,
    mustWrite: boolean,
    signal: AbortSignal,
  ): Promise<Worked> {
    const agent = this.#agents.find(({ name }) => name === task.agent);
    // Its declaration was removed or disabled while the turn was interrupted.
    if (agent === undefined) return { kind: 'failed', by: { model: 'none' } };
    const now = this.#turn.time.elapsedMs();
    const begun = this.#begun.get(task.place) ?? now;
    this.#begun.set(task.place, begun);
    const { health } = this.#deps;
    const who = this.#roleOf(agent);
    const work = { agent, who, health, state, task, mustWrite, elapsedMs: now - begun };
    const doubted = () => void this.#doubted.add(task.place);
    const held = this.#doubted.has(task.place) ? {} : { doubted };
    return workOn(this.#turn, { ...work, ...held }, signal);
  }

  /** A process that resumes the turn asks again: the text was not recorded. */
  async #report(signal: AbortSignal): Promise<ToolOutcome> {
    const state = this.#state();
    const { task } = state;
    if (task === undefined) return NO_RESULT;
    const worked = this.#written.get(task.place) ?? (await this.#work(state, task, true, signal));
    if (worked.kind !== 'done') return NO_RESULT;
    this.#written.set(task.place, worked);
    return handedBack(this.#turn, task.agent, worked.text);
  }
}

/** Has no effect itself: a task that was handed out is in progress from then on. */
function taskCall(json: string) {
  const [agent, instructions] = [argumentIn(json, 'agent'), argumentIn(json, 'instructions')];
  if (agent === undefined || instructions === undefined) return TASK;
  const text = t`The task was handed to ${agent}, whose work follows.`;
  const detail = `${agent}: ${shortened(instructions, DETAIL_CHARS)}`;
  return { detail, run: async () => ({ status: 'ok', text }) as const };
}

// FINISH: the answer for the person. Verbatim outputs are inserted, and the main model only writes
// the frame; without such outputs it writes the whole answer, and where no specialist was asked or
// responded, it does the work with its tools.

type Finishing = {
  readonly turn: ModeTurn;
  readonly health: RoleHealth;
  readonly state: SupervisedTurn;
  readonly roster: AgentRoster;
  /** The full text of a response, where it is known. */
  exact(place: number): string | undefined;
};

/** Limits of the model call that writes the frame. */
const FRAMING = { maxTokens: 1024, temperature: 0.4, timeoutMs: 120_000 };

/**
 * `tokens`: used to decide that it is done.
 * @throws SpendingRefusedError, or the reason of the signal
 */
async function* finishCue(
  finishing: Finishing,
  tokens: number,
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, Cue, void> {
  const { turn, state, roster } = finishing;
  const done = [...state.responses, ...state.messages].some(({ status }) => status === 'ok');
  if (!done) {
    const failed = new Set(state.responses.map(({ agent }) => agent));
    if (failed.size > 0) {
      const who = [...failed].join(', ');
      const text = t`${who} gave no result; I continue with the main model and its tools.`;
      yield turn.notices.lasting(text);
    }
    return { ...WITH_TOOLS, tokens };
  }
  const outputs = keptOnce(finishing);
  if (outputs.length === 0) return { ...writingCue(roster), tokens };
  return yield* turn.notices.during(framed(finishing, outputs, signal));
}

/** Without another call: the verbatim outputs, where a limit ends the turn. */
async function closingCue(finishing: Finishing): Promise<Answer | undefined> {
  const outputs = keptOnce(finishing);
  if (outputs.length === 0) return undefined;
  return unframed(finishing, await exactTexts(finishing, outputs));
}

const unframed = ({ turn }: Finishing, texts: readonly string[]): Answer => ({
  kind: 'answer',
  by: { model: mainModelOf(turn) },
  text: composedAnswer('', texts),
});

const writingCue = ({ answer }: AgentRoster): Main => ({
  kind: 'main',
  main: { tools: 'none', notes: [writingNote(answer)] },
});

/** A supervisor that loops gets the same output again; it is inserted once. */
function keptOnce({ state, roster, exact }: Finishing): readonly AgentResponse[] {
  const outputs = new Map<string, AgentResponse>();
  for (const [place, response] of state.responses.entries()) {
    const text = exact(place) ?? unwrapped(response.text);
    if (isKept(response, roster) && !outputs.has(text)) outputs.set(text, response);
  }
  return [...outputs.values()];
}

function isKept({ agent, status }: AgentResponse, { agents }: AgentRoster): boolean {
  const declared = agents.find((each) => each.kind === 'valid' && each.value.name === agent);
  return status === 'ok' && (declared?.kind !== 'valid' || declared.value.output === 'verbatim');
}

async function framed(
  finishing: Finishing,
  outputs: readonly AgentResponse[],
  signal: AbortSignal,
): Promise<Answer> {
  const { turn, health, state, roster } = finishing;
  const texts = await exactTexts(finishing, outputs);
  const who = { role: 'supervisor', model: mainModelOf(turn) } as const;
  if (health.isResting(who)) return unframed(finishing, texts);
  const text = framingQuestion(state, outputs, marked);
  const call = {
    ...FRAMING,
    system: framingSystem(roster.answer, outputs.length),
    messages: [{ role: 'user', text }] as const,
    tools: [],
  };
  const asked = await askHeld(turn, { health, who }, call, signal);
  if (asked.kind === 'failed') return unframed(finishing, texts);
  asked.judge(true);
  const { answer } = asked;
  const isUsable =
    answer.stop !== 'refused' && claimsUndone(turn, answer, answer.text).length === 0;
  const composed = composedAnswer(isUsable ? answer.text : '', texts);
  return { kind: 'answer', by: speakerOf(answer), text: composed };
}

/** From memory, or from the record in a process that resumed the turn. */
async function exactTexts(
  { turn, state, exact }: Finishing,
  outputs: readonly AgentResponse[],
): Promise<readonly string[]> {
  const known = outputs.map((output) => exact(state.responses.indexOf(output)));
  const recorded = known.includes(undefined) ? await recordedWhole(turn) : new Map();
  return outputs.map(({ resultId, text }, at) => {
    const whole: string | undefined = resultId && recorded.get(resultId);
    return known[at] ?? whole ?? unwrapped(text);
  });
}

/** The stored full results of this turn. */
async function recordedWhole({ sessions, input }: ModeTurn): Promise<Map<ResultId, string>> {
  const entries = await storedTurn(sessions, input.session, input.turnId);
  return new Map(
    entries.flatMap((entry) =>
      entry.role === 'tool' && entry.resultId !== undefined && entry.whole !== undefined
        ? [[entry.resultId, entry.whole] as const]
        : [],
    ),
  );
}

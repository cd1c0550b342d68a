// One turn of the supervisor. Before each step the shared state is read from what the turn has recorded:
// a specialist at work goes on, else the supervisor decides, until it finishes.

import type { CallReport } from '../../agent/call-report.ts';
import { roundsOf } from '../../agent/rules/turn-closing.ts';
import type { Ask } from '../../agent/rules/turn-state.ts';
import type { AgentEvent } from '../../kernel/message/event.ts';
import type { TranscriptEntry } from '../../kernel/message/transcript.ts';
import { shortened } from '../../lib/text/cut.ts';
import type { Toolbox, ToolOutcome } from '../../tools/tool.ts';
import type { AgentRoster } from './agent-files.ts';
import { askSupervisor, type Decided } from './ask-supervisor.ts';
import type { Cue, TurnMode } from './mode.ts';
import type { SupervisorDeps } from './mode-deps.ts';
import type { ModeTurn } from './modes.ts';
import { isCued } from './record-cue.ts';
import { degradedNotice } from './role-probes.ts';
import type { DeclaredAgent, Service } from './rules/declared-agent.ts';
import {
  REPORT,
  type SupervisedTask,
  type SupervisedTurn,
  supervisedTurn,
  TASK,
} from './rules/supervised-turn.ts';
import type { SupervisorConfig } from './settings.ts';
import { type Worked, workOn } from './specialist.ts';
import {
  closingCue,
  finishCue,
  supervisorToolbox,
  WITH_TOOLS,
  writingCue,
} from './supervisor-finish.ts';
import { markForeign, roleOf } from './supervisor-words.ts';

/** With fewer rounds left in the turn, what was begun is brought to its end. */
const LAST_ROUNDS = 2;
const NO_RESULT = 'Error (execution): the specialist gave no result.';

export function openSupervisor(
  turn: ModeTurn,
  deps: SupervisorDeps,
  roster: AgentRoster,
): TurnMode {
  return new SupervisorTurn(turn, deps, roster);
}

class SupervisorTurn implements TurnMode {
  readonly toolbox: Toolbox;
  readonly #turn: ModeTurn;
  readonly #deps: SupervisorDeps;
  readonly #settings: SupervisorConfig;
  readonly #roster: AgentRoster;
  readonly #agents: readonly DeclaredAgent[];
  /** When each task was taken up here, by its place; milliseconds of the turn. */
  readonly #begun = new Map<number, number>();
  /** Tasks whose specialist was asked to correct its words, by their places. */
  readonly #doubted = new Set<number>();
  /** What specialists wrote, to the letter, by the place of the task. */
  readonly #written = new Map<number, Exclude<Worked, { readonly kind: 'calls' }>>();

  constructor(turn: ModeTurn, deps: SupervisorDeps, roster: AgentRoster) {
    this.#turn = turn;
    this.#deps = deps;
    this.#settings = deps.settings();
    this.#roster = roster;
    this.#agents = roster.agents.flatMap((each) => (each.kind === 'valid' ? [each.value] : []));
    this.toolbox = supervisorToolbox(turn.toolbox, (signal) => this.#report(signal));
  }

  async *cue(ask: Ask, signal: AbortSignal): AsyncGenerator<AgentEvent, Cue, void> {
    const state = this.#state();
    const clear = this.#clear(ask, state);
    if (clear !== undefined) return clear;
    const { task } = state;
    const isLast = ask.kind === 'work' && (ask.remainingRounds ?? Infinity) <= LAST_ROUNDS;
    const { notices } = this.#turn;
    if (task !== undefined) return yield* notices.during(this.#goOn(state, task, isLast, signal));
    const { maxSteps } = this.#settings;
    const decided: Decided =
      isLast || state.made.length >= maxSteps
        ? { kind: 'moved', move: { kind: 'finish', why: 'steps' }, tokens: 0 }
        : yield* notices.during(askSupervisor(this.#turn, this.#asking(state, maxSteps), signal));
    if (decided.kind === 'moved') return yield* this.#follow(state, decided, signal);
    if (decided.isOut) yield notices.lasting(degradedNotice(decided.who));
    return yield* this.#finish(state, 0, signal);
  }

  /** Outputs to the letter, unless the main model has taken the work over. */
  async closing() {
    const { own } = this.#turn.thread;
    if (calledSince(own).some((entry) => !isCued(entry))) return undefined;
    return closingCue(this.#turn, this.#finishing(this.#state()));
  }

  /** What is to be recorded of an output beside its text. */
  async shown(call: { readonly name: string }, report: CallReport): Promise<CallReport> {
    const { task } = this.#state();
    const written = task === undefined ? undefined : this.#written.get(task.place);
    if (call.name !== REPORT || written?.kind !== 'done') return report;
    const isExact = report.status !== 'ok' || report.text === written.text;
    return isExact ? report : { ...report, whole: written.text };
  }

  #state(): SupervisedTurn {
    return supervisedTurn(this.#turn.thread.own, this.#settings.services);
  }

  /** What needs nobody's decision. */
  #clear(ask: Ask, state: SupervisedTurn): Cue | undefined {
    const { own } = this.#turn.thread;
    const since = newSince(own);
    const called = calledSince(own);
    if (called.some((entry) => !isCued(entry))) return WITH_TOOLS;
    const nobody = state.responses.length + state.messages.length === 0;
    if (ask.kind !== 'work') return nobody ? WITH_TOOLS : writingCue(this.#roster);
    const last = roundsOf(since).at(-1)?.at(-1)?.result;
    const isAsked = last?.name === 'ask_user' && last.status === 'ok';
    const model = called.at(-1)?.model;
    return isAsked && model !== undefined ? { kind: 'answer', by: { model }, text: '' } : undefined;
  }

  #asking(state: SupervisedTurn, maxSteps: number) {
    const { health } = this.#deps;
    const settings = this.#settings;
    const { rights, toolbox } = this.#turn;
    const offered = toolbox.offered(rights.current).specs.map(({ name }) => name);
    const isOffered = (service: Service) => offered.includes(service);
    const services = settings.services.filter(isOffered);
    const resting = this.#agents
      .filter((agent) => health.isResting(this.#roleOf(agent)))
      .map(({ name }) => name);
    const roster = { agents: this.#agents, resting, services };
    const left = maxSteps - state.made.length;
    return { state, roster, left, health, settings, orders: this.#roster.supervisor };
  }

  #roleOf(agent: DeclaredAgent) {
    const { input, models } = this.#turn;
    return roleOf(agent, models, input.settings.model ?? models.defaultModel);
  }

  async *#follow(
    state: SupervisedTurn,
    { move, by, tokens }: Extract<Decided, { readonly kind: 'moved' }>,
    signal: AbortSignal,
  ): AsyncGenerator<AgentEvent, Cue, void> {
    if (move.kind !== 'finish' && by !== undefined) {
      const { kind, ...args } = move;
      const json = JSON.stringify(kind === 'task' ? args : { query: move.query });
      const name = move.kind === 'task' ? TASK : move.service;
      return { kind: 'calls', by, calls: [{ name, arguments: json }] };
    }
    const why = move.kind === 'finish' ? move.why : 'decided';
    if (why !== 'decided') this.#turn.log.warn('the supervisor ends its work', { why });
    return yield* this.#finish(state, tokens, signal);
  }

  async *#finish(
    state: SupervisedTurn,
    tokens: number,
    signal: AbortSignal,
  ): AsyncGenerator<AgentEvent, Cue, void> {
    const finishing = { ...this.#finishing(state), tokens };
    return yield* finishCue(this.#turn, this.#deps, finishing, signal);
  }

  #finishing(state: SupervisedTurn) {
    const exact = (place: number) => {
      const written = this.#written.get(place);
      return written?.kind === 'done' ? written.text : undefined;
    };
    return { state, roster: this.#roster, exact };
  }

  /** The specialist at work calls its tools, or hands its work back. */
  async #goOn(
    state: SupervisedTurn,
    task: SupervisedTask,
    mustWrite: boolean,
    signal: AbortSignal,
  ): Promise<Cue> {
    const worked = await this.#work(state, task, mustWrite, signal);
    if (worked.kind === 'calls') return worked;
    this.#written.set(task.place, worked);
    const json = JSON.stringify({ agent: shortened(task.agent, 100), task: task.place });
    return { kind: 'calls', by: worked.by, calls: [{ name: REPORT, arguments: json }] };
  }

  async #work(
    state: SupervisedTurn,
    task: SupervisedTask,
    mustWrite: boolean,
    signal: AbortSignal,
  ): Promise<Worked> {
    const agent = this.#agents.find(({ name }) => name === task.agent);
    // It was taken away, or switched off, while the turn was interrupted.
    if (agent === undefined) return { kind: 'failed', by: { model: 'none' } };
    const now = this.#turn.time.elapsedMs();
    const begun = this.#begun.get(task.place) ?? now;
    this.#begun.set(task.place, begun);
    const { health } = this.#deps;
    const who = this.#roleOf(agent);
    const work = { agent, who, health, state, task, mustWrite, elapsedMs: now - begun };
    const doubted = () => void this.#doubted.add(task.place);
    const held = this.#doubted.has(task.place) ? {} : { doubted };
    return workOn(this.#turn, { ...work, ...held, wrap: markForeign }, signal);
  }

  /** In a process that took the turn up it is asked once more: what it wrote was not recorded. */
  async #report(signal: AbortSignal): Promise<ToolOutcome> {
    const state = this.#state();
    const { task } = state;
    if (task === undefined) return { status: 'failed', text: NO_RESULT, failure: 'execution' };
    const worked = this.#written.get(task.place) ?? (await this.#work(state, task, true, signal));
    if (worked.kind !== 'done') return { status: 'failed', text: NO_RESULT, failure: 'execution' };
    this.#written.set(task.place, worked);
    const { settings, thread } = this.#turn;
    const text = shortened(worked.text, settings.maxResultChars);
    if (!thread.isTainted) return { status: 'ok', text };
    const about = `from ${task.agent}, who read words of others`;
    return { status: 'ok', text: markForeign(about, text), isForeign: true };
  }
}

/** Behind what the person said last. */
const newSince = (own: readonly TranscriptEntry[]) =>
  own.slice(own.findLastIndex(({ role }) => role === 'user') + 1);
const calledSince = (own: readonly TranscriptEntry[]) =>
  newSince(own).flatMap((entry) =>
    entry.role === 'assistant' && entry.toolCalls.length > 0 ? [entry] : [],
  );

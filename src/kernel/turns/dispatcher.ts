// Handles one turn of a session: runs its stages, and inside of them a chat command or the agent. Waits
// until the person has finished writing, takes a model permit, runs the agent and returns its answers to
// the bus. A failure fails the turn, never the gateway.

import type { Agent, PreparedContext, TurnInput, TurnMessage } from '../../agent/agent.ts';
import type { Channel } from '../../channels/channel.ts';
import type { Permits } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { withoutCode } from '../access/admission.ts';
import type { MessageBus, QueuedMessage, Turn } from '../bus/bus.ts';
import type { Commands } from '../commands/commands.ts';
import type { Judge } from '../intake/judge.ts';
import { isAnsweredIn, type Routes } from '../intake/routes.ts';
import { type AccountName, accountName } from '../message/account.ts';
import type { AgentEvent, TurnOutcome } from '../message/event.ts';
import type { InboundMessage, OutboundDraft } from '../message/message.ts';
import type { TurnPerson } from '../message/notes.ts';
import { Batch, type BatchTurn, Coalescer } from './batch.ts';
import { BatchOrigins, type BatchOriginsDeps, narrowestOf } from './batch-origins.ts';
import type { CoalescePolicy } from './rules/coalesce.ts';
import {
  type SessionSettings,
  type SessionSettingsStore,
  turnSettingsOf,
} from './session-settings.ts';
import type { HandledTurn, TurnSetup, TurnStages } from './stages.ts';
import {
  answered,
  createTurnView,
  type LongAnswerDeps,
  poisonAnswer,
  resultOf,
  sendSaid,
  TurnShow,
  type TurnView,
} from './turn-answers.ts';
import type { TurnPersonOf } from './turn-person.ts';

export type DispatcherSettings = {
  readonly coalesce: CoalescePolicy & { readonly mode: 'wait' | 'speculative' };
  readonly queueMode: 'steer' | 'followup';
  readonly thinkingBudget: number;
};

export type DispatcherDeps = BatchOriginsDeps &
  LongAnswerDeps & {
    readonly stages: TurnStages;
    /** Runs turns unless a stage replaces it; so do `permits`. */
    readonly agent: Agent;
    readonly bus: MessageBus;
    readonly commands: Commands;
    readonly choices: Pick<SessionSettingsStore, 'get'>;
    /** Asked again before a command that waited in line. */
    readonly judge: Judge;
    readonly personOf: TurnPersonOf;
    readonly routes: Pick<Routes, 'answersTo'>;
    readonly permits: Permits;
    readonly clock: Clock;
    readonly log: Logger;
    channel(name: AccountName): Channel | undefined;
    /** Read at each turn, so that a changed configuration holds from the next one on. */
    settings(): DispatcherSettings;
  };

/** How a turn is answered: as the session is set, and as its person wants it. */
type TurnTerms = { readonly chosen: SessionSettings; readonly person: TurnPerson };

/** A follower came before anything was shown: the speculative answer starts again with it. */
class Superseded extends Error {
  override readonly name = 'Superseded';
}

export interface Dispatcher {
  handle(turn: Turn): Promise<HandledTurn>;
  /** What the chat is told when its message is set aside. */
  onPoison(turn: Turn): readonly OutboundDraft[];
}

export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  const { stages, agent, permits } = deps;
  const run = stages.around(async (turn, setup) => {
    const { attempt, signal } = turn;
    const [given] = turn.messages;
    const [first = given, ...rest] = await stages.arrival(turn.messages, signal);
    const command = deps.commands.find(first.message.text);
    if (command !== undefined) {
      const verdict = withoutCode(await deps.judge(first.message));
      const role = verdict.kind === 'admit' ? verdict.role : undefined;
      const origin = { message: first.message, role };
      const markdown = await deps.commands.run(command, origin);
      return resultOf(turn, first.seq, [markdown], first.message, deps);
    }
    const join = async () => stages.arrival(await turn.join(), signal);
    return new TurnRun(turn, { attempt, messages: [first, ...rest], join }, setup, deps).run();
  });
  return {
    handle: (turn) => run(turn, { agent, permits }),
    onPoison: (turn) => stages.onPoison(turn) ?? poisonAnswer(turn),
  };
}

/** One turn from its first message to its answers. */
class TurnRun {
  readonly #turn: Turn;
  readonly #setup: TurnSetup;
  readonly #deps: DispatcherDeps;
  readonly #settings: DispatcherSettings;
  readonly #batch: Batch;
  readonly #coalescer: Coalescer;
  readonly #origins: BatchOrigins;

  constructor(turn: Turn, arrived: BatchTurn, setup: TurnSetup, deps: DispatcherDeps) {
    this.#turn = turn;
    this.#setup = setup;
    this.#deps = deps;
    this.#settings = deps.settings();
    this.#batch = new Batch(arrived, deps.commands);
    this.#origins = new BatchOrigins(turn, deps);
    this.#coalescer = new Coalescer(turn, this.#batch, {
      channel: deps.channel(accountName(turn.chat)),
      policy: this.#settings.coalesce,
      clock: deps.clock,
    });
  }

  async run(): Promise<HandledTurn> {
    const { agent } = this.#setup;
    const { choices, log } = this.#deps;
    const { session, chat } = this.#turn;
    const isSpeculative = this.#settings.coalesce.mode === 'speculative';
    const person = await this.#deps.personOf(this.#turn.messages[0].message);
    const context = agent.prepare(session, chat, person);
    // Awaited below; a failure while the person still writes must not count as unhandled.
    context.catch(() => undefined);
    this.#origins.look(this.#batch.messages);
    if (!isSpeculative) await this.#coalescer.collect();
    const { seq } = this.#batch.messages.at(-1) ?? this.#turn.messages[0];
    if (!this.#batch.takeChanges()) return { throughSeq: seq, outbound: [] };
    const chosen = await choices.get(session);
    const outcome = await this.#withPermit(async () =>
      isSpeculative
        ? this.#answerSpeculatively({ chosen, person }, await context)
        : this.#answer({ chosen, person }, await context, this.#turn.signal),
    );
    log.info('turn ended', {
      session,
      turnId: this.#turn.id,
      outcome: outcome.kind,
      attempt: this.#turn.attempt,
      messages: this.#batch.messages.length,
    });
    // A replayed turn answers what it answered before; followers that joined since stay waiting.
    const { throughSeq, answers, kind: ending } = outcome;
    const result = await resultOf(this.#turn, throughSeq, answers, this.#newest, this.#deps);
    const newest = this.#batch.messages.findLast(({ seq: each }) => each <= throughSeq);
    return { ...result, ending, ...(newest === undefined ? {} : { newest: newest.message }) };
  }

  /** The session's lane is held already, so a busy chat never takes another one's place. */
  async #withPermit<T>(work: () => Promise<T>): Promise<T> {
    const permit = await this.#setup.permits.acquire(this.#turn.signal);
    try {
      return await work();
    } finally {
      permit[Symbol.dispose]();
    }
  }

  /** Asks the model at once, and again with every follower until something was shown. */
  async #answerSpeculatively(terms: TurnTerms, context: PreparedContext) {
    for (;;) {
      const controller = new AbortController();
      const signal = AbortSignal.any([this.#turn.signal, controller.signal]);
      const view = this.#view();
      const watch = this.#supersede(view, controller, signal);
      try {
        return await this.#answer(terms, context, signal, view);
      } catch (error) {
        if (this.#turn.signal.aborted || !(controller.signal.reason instanceof Superseded)) {
          throw error;
        }
        await this.#batch.join();
      } finally {
        controller.abort();
        await watch;
      }
    }
  }

  async #supersede(view: TurnView, controller: AbortController, signal: AbortSignal) {
    const hasFollower = await this.#coalescer.anyFollower(signal);
    if (hasFollower && !view.hasShown) controller.abort(new Superseded());
  }

  async #answer(
    terms: TurnTerms,
    context: PreparedContext,
    signal: AbortSignal,
    view = this.#view(),
  ): Promise<TurnOutcome> {
    const { bus, routes } = this.#deps;
    const { session, chat } = this.#turn;
    const isHere = () => isAnsweredIn(routes, session, this.#newest, chat);
    const show = new TurnShow(view, { live: bus.live, isHere });
    let outcome: TurnOutcome | undefined;
    try {
      const events = this.#setup.agent.run(await this.#input(terms, show), context, signal);
      for (;;) {
        const step = await events.next();
        if (step.done === true) {
          outcome = step.value;
          return outcome;
        }
        await show.show(step.value);
      }
    } finally {
      if (!(signal.reason instanceof Superseded)) await show.end(outcome);
    }
  }

  get #newest(): InboundMessage {
    return (this.#batch.messages.at(-1) ?? this.#turn.messages[0]).message;
  }

  #view(): TurnView {
    return createTurnView(this.#turn.id, this.#turn.chat, answered(this.#turn.messages[0].message));
  }

  async #input({ chosen, person }: TurnTerms, shown: TurnShow): Promise<TurnInput> {
    const { id, session, chat } = this.#turn;
    const mode = chosen.queueMode ?? this.#settings.queueMode;
    // A live view that cannot be updated does not fail the turn.
    const show = (event: AgentEvent) => void shown.show(event).catch(() => undefined);
    const received = (queued: QueuedMessage) => this.#origins.received(queued, show);
    const [first, ...rest] = this.#batch.messages;
    const messages = [await received(first), ...(await Promise.all(rest.map(received)))] as const;
    return {
      turnId: id,
      session,
      chat,
      person,
      messages,
      rights: narrowestOf(messages),
      settings: turnSettingsOf(chosen, this.#settings),
      steer: async (): Promise<readonly TurnMessage[]> =>
        mode === 'steer' && this.#turn.attempt === 1
          ? Promise.all((await this.#batch.join()).map(received))
          : [],
      isAllowed: (call) => this.#origins.isAllowed(call, this.#batch.messages, person),
      askOwner: (call) => this.#origins.askOwner(call, this.#batch.messages, person),
      post: (letter) => this.#origins.post(letter, this.#batch.messages, person),
      ask: (question) => this.#origins.ask(question, this.#batch.messages),
      say: (markdown, ordinal, attachments = []) => {
        const files = attachments.length === 0 ? {} : { attachments };
        const text = { turn: this.#turn, newest: this.#newest, ordinal };
        return sendSaid({ ...text, said: { markdown, ...files } }, this.#deps);
      },
    };
  }
}

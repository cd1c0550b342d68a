// Handles one turn of a session: runs its stages, and inside of them a chat command or the agent.
// Waits until the person has finished writing, takes a model permit, runs the agent and returns its
// answers to the bus. A failure fails the turn, never the gateway.

import type { PreparedContext, TurnInput, TurnMessage } from '../../agent/agent.ts';
import { AGENT } from '../../agent/install.ts';
import { MODELS } from '../../agent/models.ts';
import { createGate, RecentMap } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import { type Following, following } from '../../lib/time/clock.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import { withoutCode } from '../access/admission.ts';
import { narrowed, type Rights } from '../access/rights.ts';
import type { QueuedMessage, Turn } from '../bus/bus.ts';
import type { Kernel } from '../feature.ts';
import { ASKING, type AskingTurn, askerKey, POSTING } from '../guards.ts';
import { isAnsweredIn } from '../intake/routes.ts';
import { ProviderError } from '../message/errors.ts';
import type { SessionKey } from '../message/ids.ts';
import { accountName } from '../message/ids.ts';
import type { AgentEvent, InboundMessage, OutboundDraft, TurnOutcome } from '../message/message.ts';
import { authorOf } from '../message/message.ts';
import { personNames } from '../message/message-limits.ts';
import type { SharedCall } from '../message/transcript.ts';
import { type TurnPerson, verbatim } from '../message/untrusted.ts';
import { inOrder, port } from '../ports.ts';
import {
  type Batch,
  type BatchTurn,
  type Coalescer,
  comesApart,
  createBatch,
  createCoalescer,
} from './batch.ts';
import { editsStage } from './edits.ts';
import {
  createTurnPersonOf,
  type Origin,
  type SessionSettings,
  turnSettingsOf,
} from './origins.ts';
import { createTurnStages, type HandledTurn, type TurnSetup } from './stages.ts';
import {
  accountLimitsStage,
  answered,
  blockedSendersStage,
  createTurnView,
  poisonAnswer,
  resultOf,
  sendSaid,
  type TurnShow,
  type TurnView,
  turnShow,
} from './turn-answers.ts';

export const DISPATCHER = port<Dispatcher>('dispatcher');

export function install(kernel: Kernel): void {
  const { live, clock, log, bus, commands, judge, questions, add } = kernel;
  const channel = kernel.channels.get;
  const agent = kernel.use(AGENT);
  const afterAnswer = () => live.config.edits.afterAnswer;
  add.stage(editsStage({ bus, agent, questions, log, commands, channel, afterAnswer }));
  add.stage(blockedSendersStage({ bus, judge, clock, log }));
  add.stage(accountLimitsStage({ log, channel }));
  kernel.provide(DISPATCHER, createDispatcher(partsOf(kernel)));
}

function partsOf(kernel: Kernel) {
  const { live, clock, log, bus, commands, contributed, judge, origins, people, permits } = kernel;
  const { settings, media } = kernel;
  const { routes, persons } = people;
  return {
    ...{ bus, commands, judge, origins, routes, permits, media, clock, log, settings },
    channel: kernel.channels.get,
    /** Runs turns unless a stage replaces it; so do `permits`. */
    agent: kernel.use(AGENT),
    /** Of internal chats. */
    startedFrom: contributed.startedFrom,
    /** The first that decides. */
    callGuards: inOrder('call guards', kernel.orders.callGuards, contributed.callGuards()),
    post: kernel.use(POSTING),
    ask: kernel.use(ASKING),
    models: kernel.use(MODELS),
    stages: createTurnStages(kernel.orders.stages, contributed.stages()),
    personOf: createTurnPersonOf(persons),
    maxAnswerChars: () => live.config.limits.answers.maxChars,
    redact: live.redact,
    /** Read at each turn, so that a changed configuration applies from the next one on. */
    configured: () => ({
      coalesce: live.config.coalesce,
      thinkingBudget: live.defaults.thinkingBudget,
      queueMode: live.config.queue.mode,
    }),
  };
}

type DispatcherDeps = ReturnType<typeof partsOf>;

/** How a turn is answered: by the settings of the session and of its person. */
type TurnTerms = { readonly chosen: SessionSettings; readonly person: TurnPerson };

/** Sessions whose last message time is tracked. */
const MAX_RECENT_SESSIONS = 1000;
/** Of turns that become due together. */
const BEGIN_AT_ONCE = 10;

/** A follower arrived before anything was shown: the answer starts again with it. */
class Superseded extends Error {
  override readonly name = 'Superseded';
}

export type Dispatcher = ReturnType<typeof createDispatcher>;

function createDispatcher(deps: DispatcherDeps) {
  const { stages, agent, permits } = deps;
  const lastMessageAt = new RecentMap<SessionKey, number>(MAX_RECENT_SESSIONS);
  const begins = createGate(BEGIN_AT_ONCE);
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
    const arrived = { attempt, messages: [first, ...rest], join } as const;
    const chosen = await deps.settings.get(turn.session);
    return createTurnRun(turn, arrived, setup, { ...deps, lastMessageAt, begins, chosen }).run();
  });
  return {
    handle: (turn: Turn): Promise<HandledTurn> => run(turn, { agent, permits }),
    /** The text for the chat when its message becomes a dead letter. */
    onPoison: (turn: Turn): readonly OutboundDraft[] => stages.onPoison(turn) ?? poisonAnswer(turn),
  };
}

type TurnRunDeps = DispatcherDeps & {
  /** Local clock, epoch milliseconds. */
  readonly lastMessageAt: Map<SessionKey, number>;
  /** Turns that become due together begin one after the other, so that the first calls leave early. */
  begins(): Promise<void>;
  readonly chosen: SessionSettings;
};

/** One turn from its first message to its answers. */
function createTurnRun(turn: Turn, arrived: BatchTurn, setup: TurnSetup, deps: TurnRunDeps) {
  const settings = deps.configured();
  const { chosen } = deps;
  const mode = chosen.queueMode ?? settings.queueMode;
  const channel = deps.channel(accountName(turn.chat));
  const units = channel?.limits.textUnits ?? Number.POSITIVE_INFINITY;
  const batch: Batch = createBatch(arrived, {
    ...deps,
    isApart: (taken, next) =>
      mode === 'followup' && comesApart(taken, next, settings.coalesce, units),
  });
  const origins = new BatchOrigins(turn, deps);
  /** They joined too late for a restart: the next model call gets them. */
  const late: QueuedMessage[] = [];
  const restarted: SharedCall[] = [];
  const coalescer: Coalescer = createCoalescer(turn, batch, {
    channel,
    policy: settings.coalesce,
    clock: deps.clock,
  });

  async function run(): Promise<HandledTurn> {
    const { agent } = setup;
    const { log } = deps;
    const { session, chat } = turn;
    const person = await deps.personOf(turn.messages[0].message);
    const context = agent.prepare(session, chat, person);
    // Awaited below; a failure while the person still writes must not count as unhandled.
    context.catch(() => undefined);
    origins.look(batch.messages);
    const terms: TurnTerms = { chosen, person };
    const startsAtOnce = mayStartAtOnce(chosen);
    if (!startsAtOnce) await coalescer.collect();
    const { seq } = batch.messages.at(-1) ?? turn.messages[0];
    if (!batch.takeChanges()) return { throughSeq: seq, outbound: [] };
    const early = startsAtOnce
      ? await withPermit(async () => answerAtOnce(terms, await context))
      : undefined;
    // After a first follower, the rest of the quiet time is awaited.
    if (startsAtOnce && early === undefined) await coalescer.collect();
    const outcome = early ?? (await answerInFull(terms, context));
    deps.lastMessageAt.set(session, newestMessage().receivedAt);
    log.info('turn ended', {
      session,
      turnId: turn.id,
      outcome: outcome.kind,
      attempt: turn.attempt,
      messages: batch.messages.length,
    });
    // A replayed turn gives its recorded answers; followers that joined since stay waiting.
    const { throughSeq, answers, kind: ending } = outcome;
    const result = await resultOf(turn, throughSeq, answers, newestMessage(), deps);
    const newest = batch.messages.findLast(({ seq: each }) => each <= throughSeq);
    return { ...result, ending, ...(newest === undefined ? {} : { newest: newest.message }) };
  }

  /** The session's lane is held already, so a busy chat never takes another one's place. */
  async function withPermit<T>(work: () => Promise<T>): Promise<T> {
    using _permit = await setup.permits.acquire(turn.signal);
    return await work();
  }

  /** In the mode `interrupt` anew for each message that comes meanwhile. */
  async function answerInFull(terms: TurnTerms, context: Promise<PreparedContext>) {
    for (;;) {
      const outcome = await withPermit(async () =>
        mode === 'interrupt'
          ? answerUntilFollower(terms, await context)
          : answer(terms, await context, turn.signal),
      );
      if (outcome !== undefined) return outcome;
      await coalescer.collect();
    }
  }

  /**
   * Undefined if a message joined: what the try recorded stands, its calls with effects too, as
   * after a restart of the process.
   */
  async function answerUntilFollower(terms: TurnTerms, context: PreparedContext) {
    return supersedable((attempt) => ({
      watch: interruptBy(attempt),
      outcome: answer(terms, context, attempt.signal),
    }));
  }

  async function interruptBy({ abort, signal }: Following) {
    while (!batch.isClosed && batch.messages.length < settings.coalesce.maxMessages) {
      const isThere = await turn.arrival(signal).then(
        () => true,
        () => false,
      );
      if (!isThere) return;
      const joined = await batch.join();
      if (joined.length > 0) return abort(new Superseded());
    }
  }

  /** Undefined if the attempt ended because it was superseded. */
  async function supersedable(
    begin: (attempt: Following) => {
      readonly watch: Promise<void>;
      readonly outcome: Promise<TurnOutcome>;
    },
  ): Promise<TurnOutcome | undefined> {
    const attempt = following(turn.signal);
    const { watch, outcome } = begin(attempt);
    try {
      return await outcome;
    } catch (error) {
      const isSuperseded = attempt.signal.reason instanceof Superseded;
      if (turn.signal.aborted || !isSuperseded) throw error;
      return undefined;
    } finally {
      attempt.abort();
      await watch;
    }
  }

  /**
   * Whether waiting for followers would most likely only delay the answer: they are rare, and a
   * call of a service is cheap.
   */
  function mayStartAtOnce({ model }: SessionSettings): boolean {
    const { addressing, group } = newestMessage();
    const isDirect = addressing === 'direct' && group === undefined;
    // If later messages wait for the next turn, they must not restart this one.
    if (settings.coalesce.mode === 'wait' || !isDirect || mode !== 'steer') return false;
    const before = deps.lastMessageAt.get(turn.session);
    return coalescer.mayStartAtOnce(before) && isCloudModel(deps.models.current(), model);
  }

  /**
   * Calls the model while the person may still write; undefined if a follower arrived before
   * anything was shown or done.
   */
  async function answerAtOnce(terms: TurnTerms, context: PreparedContext) {
    const view = freshView();
    return supersedable((attempt) => ({
      watch: supersede(view, attempt),
      outcome: answer(terms, context, attempt.signal, view, coalescer.quiet),
    }));
  }

  async function supersede(view: TurnView, { abort, signal }: Following) {
    const hasFollower = await coalescer.anyFollower(signal);
    if (!hasFollower || view.hasShown) return;
    // A command or a reaction does not join: it waits behind the answer, which it leaves unchanged.
    const joined = await batch.join();
    if (joined.length > 0 && !view.hasShown) abort(new Superseded());
    else late.push(...joined);
  }

  async function answer(
    terms: TurnTerms,
    context: PreparedContext,
    signal: AbortSignal,
    view = freshView(),
    settled?: TurnInput['settled'],
  ): Promise<TurnOutcome> {
    const { bus, routes } = deps;
    const { session, chat } = turn;
    const isHere = () => isAnsweredIn(routes, session, newestMessage(), chat);
    const show = turnShow(view, { live: bus.live, clock: deps.clock, isHere });
    let outcome: TurnOutcome | undefined;
    await deps.begins();
    try {
      const events = setup.agent.run(await input(terms, show, settled), context, signal);
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

  function newestMessage(): InboundMessage {
    return (batch.messages.at(-1) ?? turn.messages[0]).message;
  }

  function freshView(): TurnView {
    return createTurnView(turn.id, turn.chat, answered(turn.messages[0].message));
  }

  async function input(
    { chosen, person }: TurnTerms,
    shown: TurnShow,
    settled: TurnInput['settled'],
  ): Promise<TurnInput> {
    const { id, session, chat } = turn;
    const { callGuards, post, ask } = deps;
    const asking = () => origins.asking(batch.messages, person);
    // A live view that cannot be updated does not fail the turn.
    const show = (event: AgentEvent) => void shown.show(event).catch(() => undefined);
    const received = (queued: QueuedMessage) => origins.received(queued, show);
    const [first, ...rest] = batch.messages;
    const messages = [await received(first), ...(await Promise.all(rest.map(received)))] as const;
    return {
      turnId: id,
      epoch: turn.epoch,
      session,
      chat,
      person,
      messages,
      rights: narrowestOf(messages),
      settings: turnSettingsOf(chosen, settings),
      ...(settled === undefined ? {} : { settled }),
      restarted,
      steer: async (): Promise<readonly TurnMessage[]> =>
        mode === 'steer' && turn.attempt === 1
          ? Promise.all([...late.splice(0), ...(await batch.join())].map(received))
          : [],
      async judge(call) {
        const asker = await asking();
        for (const guard of callGuards) {
          const verdict = await guard.judge(call, asker);
          if (verdict !== undefined) return verdict;
        }
        return undefined;
      },
      post: async (letter) => post(letter, await asking()),
      // The author of the newest message.
      ask: (question) => ask(question, { session, turnId: id, newest: newestMessage() }),
      say: (markdown, ordinal, attachments = []) => {
        const files = attachments.length === 0 ? {} : { attachments };
        const text = { turn: turn, newest: newestMessage(), ordinal };
        return sendSaid({ ...text, said: { markdown, ...files } }, deps);
      },
    };
  }

  return { run };
}

/** A local model answers one at a time, and an abandoned call delays the next one. */
function isCloudModel(models: ModelRegistry, name = models.defaultModel): boolean {
  try {
    return !models.resolve(name).local;
  } catch (error) {
    if (error instanceof ProviderError) return false;
    throw error;
  }
}

// The senders of the messages of a turn: looks up, in parallel with other work, the rights of each,
// and for whom owners are asked.

type BatchOriginsDeps = Pick<DispatcherDeps, 'origins' | 'stages'>;

class BatchOrigins {
  readonly #turn: Turn;
  readonly #deps: BatchOriginsDeps;
  readonly #found = new Map<number, Promise<Origin>>();
  readonly #received = new Map<number, Promise<TurnMessage>>();

  constructor(turn: Turn, deps: BatchOriginsDeps) {
    this.#turn = turn;
    this.#deps = deps;
  }

  /** Starts the lookup; a failure surfaces where the result is needed. */
  look(messages: readonly QueuedMessage[]): void {
    for (const queued of messages) this.#of(queued).catch(() => undefined);
  }

  /**
   * The message as the agent gets it: with the rights of its sender, and passed through the stages
   * once.
   */
  received(queued: QueuedMessage, show: (event: AgentEvent) => void): Promise<TurnMessage> {
    const known = this.#received.get(queued.seq) ?? this.#receive(queued, show);
    this.#received.set(queued.seq, known);
    return known;
  }

  /** The terms for asking owners on behalf of these messages. */
  async asking(messages: readonly QueuedMessage[], person: TurnPerson): Promise<AskingTurn> {
    const origins = await Promise.all(messages.map((queued) => this.#of(queued)));
    const { session, id: turnId } = this.#turn;
    // A conversation may continue in another chat than the one it is named after.
    const { message: newest } = messages.at(-1) ?? this.#turn.messages[0];
    const { chat } = newest;
    const isOwnerHere = origins.every((origin) => origin.isOwnerHere);
    return {
      ...{ session, turnId, chat, person },
      ...paidAs(newest),
      replyTo: answered(newest),
      asker: isOwnerHere ? t`you on ${chat.channel}` : askerOf(newest),
      isOwnerHere,
      whose: askerKey(messages.map(({ message }) => message)),
    };
  }

  async #receive(queued: QueuedMessage, show: (event: AgentEvent) => void): Promise<TurnMessage> {
    const { session, signal } = this.#turn;
    const { rights, isForeign } = await this.#of(queued);
    return this.#deps.stages.message({ ...queued, rights, isForeign }, { session, signal, show });
  }

  #of(queued: QueuedMessage): Promise<Origin> {
    const known = this.#found.get(queued.seq) ?? this.#deps.origins(queued.message);
    this.#found.set(queued.seq, known);
    return known;
  }
}

/** A turn may do only what all the people it answers may. */
function narrowestOf(messages: readonly [TurnMessage, ...TurnMessage[]]): Rights {
  const [first, ...rest] = messages;
  return rest.reduce((rights, message) => narrowed(rights, message.rights), first.rights);
}

function paidAs({ sender, chat }: InboundMessage): Pick<AskingTurn, 'paidBy'> {
  const paidBy = sender.kind === 'person' ? personNames({ sender, chat }) : sender.paidBy;
  return paidBy === undefined ? {} : { paidBy };
}

function askerOf({ sender, chat, group }: InboundMessage): string {
  if (sender.kind === 'system' && sender.source === 'subagent') return t`a subagent (${chat.chat})`;
  if (sender.kind === 'system' && sender.source === 'workflow') return t`a workflow (${chat.chat})`;
  const title = group?.title === undefined ? '' : ` (${verbatim(group.title)})`;
  const place = group === undefined ? '' : t`, in the group ${verbatim(chat.chat)}${title}`;
  return t`${verbatim(authorOf(sender))} on ${chat.channel}${place}`;
}

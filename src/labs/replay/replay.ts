// Replays recorded turns with the current agent: prompt, settings and model as recorded or
// replaced. It writes nothing to the conversation, no tool has an effect, and no messages are sent.

import type { Agent, TurnInput, TurnMessage } from '../../agent/agent.ts';
import { sized } from '../../agent/rules/tokens.ts';
import { ALL_RIGHTS, type Rights } from '../../kernel/access/rights.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import {
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
  type SessionKey,
  type TurnId,
} from '../../kernel/message/ids.ts';
import { type ChatRef, chatRefOf } from '../../kernel/message/message.ts';
import type {
  AssistantEntry,
  ToolEntry,
  TranscriptEntry,
  UserEntry,
} from '../../kernel/message/transcript.ts';
import type { TurnPerson } from '../../kernel/message/untrusted.ts';
import {
  type RecordedAsk,
  type RequestTexts,
  recordedAsk,
  requestLines,
} from '../../kernel/sessions/rules/request-records.ts';
import type { RequestLog, SessionStore } from '../../kernel/sessions/store.ts';
import { canonicalJson } from '../../lib/json/json.ts';
import { type DiffLine, headOf, lineDiff } from '../../lib/text/cut.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ModelHandle, ModelRegistry } from '../../providers/provider.ts';
import type { ModelCapabilities } from '../../providers/rules/model-names.ts';
import type { BoundCall, OfferedTool, Toolbox, ToolOutcome } from '../../tools/tool.ts';
import { EVAL_CHANNEL, labMessage, unattended } from '../eval/workbench.ts';
import {
  compareTurns,
  outlineOf,
  type Pricing,
  type RecordedTurn,
  type TurnComparison,
  type TurnOutline,
  unrepeatable,
} from './rules/replay.ts';

/** The first recorded call of the main model, or else the first call. */
const firstOf = (asks: readonly (RecordedAsk | undefined)[]) =>
  asks.find((ask) => ask?.prompt !== undefined) ?? asks.find((ask) => ask !== undefined);

const asksOf = (answers: readonly AssistantEntry[], texts: RequestTexts) =>
  answers.map(({ asked }) => recordedAsk(asked, texts));

/** One sentence for each part that is not on record. */
function missingOf(ask: RecordedAsk | undefined): readonly string[] {
  if (ask === undefined) {
    return [
      'the request log has no entry: uses prompt, tools and settings of today, with all rights',
    ];
  }
  const { lost } = ask;
  return lost.length === 0 ? [] : [`no longer completely recorded: ${lost.join(', ')}`];
}

export type ReplayDeps = {
  readonly agent: Pick<Agent, 'prepare' | 'run'>;
  readonly stage: ReplayStage;
  readonly session: SessionKey;
  readonly person: TurnPerson;
  readonly clock: Clock;
  readonly pricing: Pricing;
  /** The request log of this conversation. */
  readonly texts: RequestTexts;
  readonly models: Pick<ModelRegistry, 'resolve' | 'defaultModel'>;
  readonly model: ReplayModel;
  /** Whether prompt and tools are the recorded ones. */
  readonly prompt: 'recorded' | 'today';
  /** Applies the recorded settings, if requested. */
  settle(ask: RecordedAsk | undefined): Settled;
  /** Number of images that could not be shown in the latest turn. */
  missingImages(): number;
};

/**
 * `record`: the recorded answers; otherwise the model that is called, `recorded`: the one of that
 * time.
 */
export type ReplayModel =
  | 'record'
  | { readonly kind: 'recorded' | 'today' }
  | { readonly kind: 'named'; readonly name: string };

export type Settled = {
  /** What could not be restored, one sentence each. */
  readonly notes: readonly string[];
  readonly settings: TurnInput['settings'];
};

export type PlayedTurn = Pick<RecordedTurn, 'id' | 'place'> & {
  /** Beginning of the person's message. */
  readonly about: string;
} & (
    | { readonly kind: 'skipped'; readonly why: string }
    | {
        readonly kind: 'played';
        readonly recorded: TurnOutline;
        readonly played: TurnOutline;
        readonly comparison: TurnComparison;
        /** What could not be restored, one sentence each. */
        readonly notes: readonly string[];
        /** Differences between the recorded request and this one; empty where none is on record. */
        readonly asked: readonly DiffLine[];
      }
  );

const ABOUT_CHARS = 70;

/** A model error becomes a failed turn. @throws the signal's reason */
export async function replayTurn(
  deps: ReplayDeps,
  turn: RecordedTurn,
  signal: AbortSignal,
): Promise<PlayedTurn> {
  const { stage, agent, pricing, model, session, person, texts } = deps;
  const { id, place } = turn;
  const words = turn.asked.map(({ text }) => text).join(' ');
  const named = { id, place, about: headOf(words.replace(/\s+/g, ' '), ABOUT_CHARS) };
  const skipped = (why: string): PlayedTurn => ({ ...named, kind: 'skipped', why });
  const [first] = turn.asked;
  const why = model === 'record' || first === undefined ? unrepeatable(turn) : undefined;
  if (first === undefined || why !== undefined) return skipped(why ?? '');
  const asks = asksOf(turn.answers, texts);
  const ask = firstOf(asks);
  const name = modelFor(deps, turn, ask);
  if (name === undefined) return skipped(NOT_SERVED);
  const { notes, settings } = deps.settle(ask);
  stage.put(turn, toldTo(deps, ask));
  const input = inputOf(deps, { turn, asks, settings: { ...settings, model: name } }, first);
  const context = await agent.prepare(session, input.chat, person);
  const events = agent.run(input, context, signal);
  let next = await events.next();
  while (next.done !== true) next = await events.next();
  const answers = stage.own.filter((entry) => entry.role === 'assistant');
  const end = stage.own.find((entry) => entry.role === 'turn_end');
  const recorded = outlineOf(turn, pricing);
  const played = outlineOf({ answers, end }, pricing);
  const comparison = compareTurns(recorded, played);
  const isSame = comparison.isSame && (model !== 'record' || stage.unspoken === 0);
  const now = firstOf(asksOf(answers, stage.asked));
  return {
    ...{ ...named, kind: 'played', recorded, played, comparison: { ...comparison, isSame } },
    notes: [...missingOf(ask), ...notes, ...imagesNote(deps)],
    asked: ask && now ? lineDiff(requestLines(ask), requestLines(now)) : [],
  };
}

const NOT_SERVED = 'its model is no longer available; choose another with --model';

/** Undefined where no vendor serves it. */
function modelFor(
  { model, models }: ReplayDeps,
  { answers }: RecordedTurn,
  first: RecordedAsk | undefined,
): string | undefined {
  if (model !== 'record' && model.kind === 'named') return model.name;
  const then = first?.model ?? answers[0]?.model;
  if (model === 'record') return then ?? models.defaultModel;
  if (model.kind === 'today' || then === undefined) return models.defaultModel;
  try {
    return models.resolve(then).name;
  } catch (error) {
    if (error instanceof ProviderError) return undefined;
    throw error;
  }
}

function toldTo({ model, prompt: wish }: ReplayDeps, first: RecordedAsk | undefined): Told {
  if (first === undefined) return {};
  const { prompt, tools, contextTokens } = first;
  return {
    ...(wish === 'recorded' && prompt !== undefined ? { prompt } : {}),
    ...(wish === 'recorded' && tools !== undefined ? { tools } : {}),
    ...(model === 'record' && contextTokens !== undefined ? { contextTokens } : {}),
  };
}

function imagesNote(deps: ReplayDeps): readonly string[] {
  const count = deps.missingImages();
  return count === 0 ? [] : [`images that were deleted: ${count}`];
}

type Played = {
  readonly turn: RecordedTurn;
  readonly asks: readonly (RecordedAsk | undefined)[];
  readonly settings: TurnInput['settings'];
};

function inputOf(
  { session, person, stage, clock }: ReplayDeps,
  { turn, asks, settings }: Played,
  first: UserEntry,
): TurnInput {
  const chat = chatOf(session);
  /** The rights of a message after that many answers: those of the call that first included it. */
  const rightsAfter = (count: number): Rights =>
    asks.slice(count).find((ask) => ask !== undefined)?.rights ?? ALL_RIGHTS;
  const messageOf = (entry: UserEntry, at: number, after = 0): TurnMessage => {
    const id = entry.messageId ?? messageId(`${turn.id}/asked/${at}`);
    return {
      seq: entry.seq ?? at,
      rights: rightsAfter(after),
      isForeign: entry.isForeign === true,
      message: labMessage({ id, chat, text: entry.text }, clock.now()),
    };
  };
  const rest = turn.asked.slice(1);
  const steering = turn.steered.map((each, at) => ({ ...each, at: at + turn.asked.length }));
  return {
    turnId: turn.id,
    ...{ session, chat, person, rights: rightsAfter(0), settings },
    messages: [messageOf(first, 0), ...rest.map((entry, at) => messageOf(entry, at + 1))],
    async steer() {
      const said = stage.own.filter(({ role }) => role === 'assistant').length;
      const due = steering.filter(({ after }) => after <= said);
      steering.splice(0, due.length);
      return due.map(({ entry, at, after }) => messageOf(entry, at, after));
    },
    ...unattended('Nobody is asked while a turn is played again.'),
  };
}

/** As the prompt names it. */
function chatOf(session: SessionKey): ChatRef {
  const fallback = { channel: EVAL_CHANNEL, account: DEFAULT_ACCOUNT, chat: chatId('replay') };
  return chatRefOf(session) ?? fallback;
}

// Replaces the environment of a replayed turn: a read-only conversation, tools that answer from the
// record without effects, and, if requested, a model that returns the recorded answers.

const RECORDED_MODEL = 'record/record';
const CAPABILITIES: ModelCapabilities = {
  sizeClass: 'large',
  toolCalling: 'native',
  textDialect: 'json',
  thinking: false,
  strictAlternation: false,
};
const NOT_RECORDED: ToolOutcome = {
  status: 'failed',
  failure: 'blocked',
  text: 'Error (not recorded): this turn is played again from its record, nothing is really done, and the record holds no such call. Go on without it.',
};

/** Left out: the current one. */
export type Told = Partial<Pick<RecordedAsk, 'prompt' | 'tools' | 'contextTokens'>>;

/** Holds one turn at a time. */
export class ReplayStage {
  #turn: RecordedTurn | undefined;
  #before: readonly TranscriptEntry[] = [];
  /** The entries of the turn in this replay. */
  own: readonly TranscriptEntry[] = [];
  #left: ToolEntry[] = [];
  #spoken = 0;
  #told: Told = {};
  #specs: readonly OfferedTool[] | undefined;
  /** The texts of the requests in this replay, by fingerprint. */
  readonly asked = new Map<string, string>();

  /** `told`: the recorded parts of the request; the rest is current. */
  put(turn: RecordedTurn, told: Told): void {
    this.#turn = turn;
    this.#before = turn.before();
    this.own = [];
    this.#left = [...turn.results];
    this.#spoken = 0;
    this.#told = told;
    this.#specs = told.tools?.map(sized);
    this.asked.clear();
  }

  get prompt(): RecordedAsk['prompt'] {
    return this.#told.prompt;
  }

  readonly requestLog: RequestLog = {
    keep: (_session, ask, pieces) => {
      for (const { print, text } of [ask, ...pieces()]) this.asked.set(print, text);
    },
  };

  /** Appends only in memory. */
  readonly sessions: SessionStore = {
    load: async () => this.#before,
    append: async (_session, entries) => {
      this.own = [...this.own, ...entries];
      return entries;
    },
    appendIf: async () => false,
    turn: async (_session, id: TurnId) =>
      id === this.#turn?.id ? [...this.#turn.asked, ...this.own] : [],
    earlier: async () => ({ turns: [], hasOlder: false }),
    restorePoints: async () => [],
    restore: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };

  toolbox(real: Toolbox): Toolbox {
    return {
      offered: (rights, mayUse = () => true) => {
        const today = real.offered(rights, mayUse);
        const specs = this.#specs?.filter(({ name }) => mayUse(name));
        return specs === undefined ? today : { ...today, specs };
      },
      missing: () => real.missing(),
      bind: (name, args) => this.#bound(real.bind(name, args), name, args),
    };
  }

  /** A call with the same name and arguments gets the recorded result of such a call, in order. */
  #bound(real: BoundCall, name: string, args: string): BoundCall {
    const wanted = canonicalJson(args);
    const isSuch = (entry: ToolEntry) =>
      entry.name === name && canonicalJson(this.#argumentsOf(entry)) === wanted;
    const run = async () => {
      const at = this.#left.findIndex(isSuch);
      const [entry] = at < 0 ? [] : this.#left.splice(at, 1);
      return entry === undefined ? NOT_RECORDED : outcomeOf(entry);
    };
    const isRecorded = this.#left.some(isSuch);
    const nothing = { isPosted: false, url: undefined, seal: async () => undefined, run } as const;
    const harmless = { ...nothing, reach: 'outside' as const, accessIn: () => 'read' as const };
    // A call that is not on record is subject to the rights of the turn.
    if (real.kind === 'ready') return { ...real, ...(isRecorded ? harmless : nothing) };
    const isKnown = isRecorded || this.#specs?.some((spec) => spec.name === name) === true;
    if (!isKnown) return real;
    // The tool does not exist any more, or takes other arguments now.
    return {
      kind: 'ready',
      name,
      access: 'read',
      arguments: args,
      detail: '',
      ...harmless,
    };
  }

  #argumentsOf({ callId }: ToolEntry): string {
    const calls = (this.#turn?.answers ?? []).flatMap(({ toolCalls }) => toolCalls);
    return calls.find(({ id }) => id === callId)?.arguments ?? '';
  }

  /** Returns the recorded answers, one after the other. */
  recordedModels(contextTokens: number): ModelRegistry {
    const stage = this;
    const handleOf = (name: string): ModelHandle => ({
      name,
      contextTokens: stage.#told.contextTokens ?? contextTokens,
      local: false,
      vision: false,
      capabilities: CAPABILITIES,
      async *stream() {
        const said = stage.#turn?.answers[stage.#spoken];
        if (said === undefined) throw endOfRecord();
        stage.#spoken += 1;
        const { text, toolCalls, thinking, model, usage } = said;
        if (text !== '') yield { type: 'text', delta: text };
        yield {
          type: 'finished',
          ...{ model, text, toolCalls, thinking },
          stop: toolCalls.length > 0 ? 'tool_calls' : 'end',
          ...(usage === undefined ? {} : { usage }),
        };
      },
    });
    return { resolve: handleOf, defaultModel: RECORDED_MODEL, fast: (model) => model };
  }

  /** Number of recorded answers that were not requested in this replay. */
  get unspoken(): number {
    return (this.#turn?.answers.length ?? 0) - this.#spoken;
  }
}

function outcomeOf({ status, text, failure, isForeign }: ToolEntry): ToolOutcome {
  return {
    status: status === 'ok' ? 'ok' : 'failed',
    text,
    ...(failure === undefined ? {} : { failure }),
    ...(isForeign === undefined ? {} : { isForeign }),
  };
}

const endOfRecord = () =>
  new ProviderError('the model is called once more than in the record', {
    failure: { kind: 'malformed' },
    provider: 'record',
    model: RECORDED_MODEL,
  });

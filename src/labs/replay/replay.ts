// Replays recorded turns with the current agent: prompt, settings and model as recorded or replaced.
// Nothing is written to the conversation, no tool has an effect, nobody gets a message.

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
import type { ModelCapabilities } from '../../providers/rules/model-capabilities.ts';
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

/** What the first call of the main model was asked with, or else the first call at all. */
const firstOf = (asks: readonly (RecordedAsk | undefined)[]) =>
  asks.find((ask) => ask?.prompt !== undefined) ?? asks.find((ask) => ask !== undefined);

const asksOf = (answers: readonly AssistantEntry[], texts: RequestTexts) =>
  answers.map(({ asked }) => recordedAsk(asked, texts));

/** A sentence for each thing that could not be as it was. */
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
  /** What is kept of what models were asked with in this conversation. */
  readonly texts: RequestTexts;
  readonly models: Pick<ModelRegistry, 'resolve' | 'defaultModel'>;
  readonly model: ReplayModel;
  /** Whether prompt and tools are those of then. */
  readonly prompt: 'recorded' | 'today';
  /** Has the agent work with the settings of then, where that is wanted. */
  settle(ask: RecordedAsk | undefined): Settled;
  /** Images that the newest turn could not be shown any more. */
  missingImages(): number;
};

/** `record`: what the models said then; else the one that is asked now, `recorded`: that of then. */
export type ReplayModel =
  | 'record'
  | { readonly kind: 'recorded' | 'today' }
  | { readonly kind: 'named'; readonly name: string };

export type Settled = {
  /** What could not be as it was, a sentence each. */
  readonly notes: readonly string[];
  readonly settings: TurnInput['settings'];
};

export type PlayedTurn = Pick<RecordedTurn, 'id' | 'place'> & {
  /** First words of what was asked. */
  readonly about: string;
} & (
    | { readonly kind: 'skipped'; readonly why: string }
    | {
        readonly kind: 'played';
        readonly recorded: TurnOutline;
        readonly played: TurnOutline;
        readonly comparison: TurnComparison;
        /** What could not be as it was, a sentence each. */
        readonly notes: readonly string[];
        /** What it was asked with then, and this time; empty where that is not on record. */
        readonly asked: readonly DiffLine[];
      }
  );

const ABOUT_CHARS = 70;

/** A model that fails is a turn that failed. @throws the signal's reason */
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

/** Undefined where nobody serves it. */
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
  /** Of a message behind so many answers: those of the call that it was shown in. */
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

// What stands in for the world while a turn is played again: a conversation that is only looked at,
// tools that answer from the record and do nothing, and, where it is wanted, a model that says what it
// said then.

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

/** Left out: as it is today. */
export type Told = Partial<Pick<RecordedAsk, 'prompt' | 'tools' | 'contextTokens'>>;

/** One turn at a time is on it. */
export class ReplayStage {
  #turn: RecordedTurn | undefined;
  #before: readonly TranscriptEntry[] = [];
  /** What the turn recorded this time. */
  own: readonly TranscriptEntry[] = [];
  #left: ToolEntry[] = [];
  #spoken = 0;
  #told: Told = {};
  #specs: readonly OfferedTool[] | undefined;
  /** What the model was asked with this time, by its prints. */
  readonly asked = new Map<string, string>();

  /** `told`: what the model is asked with as it was then; the rest is that of today. */
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

  /** Appends to memory alone. */
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

  /** A call of the same name and arguments gets what such a call got then, in the same order. */
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
    // What was not done then is held to the rights of the turn, like any call.
    if (real.kind === 'ready') return { ...real, ...(isRecorded ? harmless : nothing) };
    const isKnown = isRecorded || this.#specs?.some((spec) => spec.name === name) === true;
    if (!isKnown) return real;
    // A tool that is not there any more, or takes other arguments now.
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

  /** Says what the models said then, one after the other. */
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

  /** Whether the models said more then than they were asked for this time. */
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

// Replays recorded turns with the current agent: prompt, settings and model as recorded or replaced.
// Nothing is written to the conversation, no tool has an effect, nobody gets a message.

import type { Agent, TurnInput, TurnMessage } from '../../agent/agent.ts';
import {
  type AskedTexts,
  askedLines,
  type RecordedAsk,
  recordedAsk,
} from '../../features/request-log/rules/asked.ts';
import { ALL_RIGHTS, type Rights } from '../../kernel/access/rights.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import { chatId, DEFAULT_ACCOUNT, messageId, type SessionKey } from '../../kernel/message/ids.ts';
import { type ChatRef, chatRefOf } from '../../kernel/message/message.ts';
import type { TurnPerson } from '../../kernel/message/notes.ts';
import type { AssistantEntry, UserEntry } from '../../kernel/message/transcript.ts';
import { type DiffLine, headOf, lineDiff } from '../../lib/text/cut.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import { EVAL_CHANNEL, labMessage, unattended } from '../eval/workbench.ts';
import type { ReplayStage, Told } from './replay-stage.ts';
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

const asksOf = (answers: readonly AssistantEntry[], texts: AskedTexts) =>
  answers.map(({ asked }) => recordedAsk(asked, texts));

/** A sentence for each thing that could not be as it was. */
function missingOf(ask: RecordedAsk | undefined): readonly string[] {
  if (ask === undefined) {
    return [
      'what it was asked with is not on record: prompt, tools and settings are those of today, and it has all rights',
    ];
  }
  const { lost } = ask;
  return lost.length === 0 ? [] : [`not on record any more, or not whole: ${lost.join(', ')}`];
}

export type ReplayDeps = {
  readonly agent: Pick<Agent, 'prepare' | 'run'>;
  readonly stage: ReplayStage;
  readonly session: SessionKey;
  readonly person: TurnPerson;
  readonly clock: Clock;
  readonly pricing: Pricing;
  /** What is kept of what models were asked with in this conversation. */
  readonly texts: AskedTexts;
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
    asked: ask && now ? lineDiff(askedLines(ask), askedLines(now)) : [],
  };
}

const NOT_SERVED = 'nobody serves its model any more; --model names another';

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
  return count === 0 ? [] : [`images that are not kept any more: ${count}`];
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

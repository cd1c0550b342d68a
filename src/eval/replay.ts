// Plays recorded turns again with the agent of today. Nothing is written to the conversation, no tool
// does anything, and nobody is written to.

import type { Agent, TurnInput, TurnMessage } from '../agent/agent.ts';
import { type AskedTexts, askedLines, type RecordedAsk } from '../core/asked.ts';
import { headOf } from '../core/cut.ts';
import { ProviderError } from '../core/errors.ts';
import { chatId, DEFAULT_ACCOUNT, messageId, type SessionKey } from '../core/ids.ts';
import { type ChatRef, chatRefOf } from '../core/message.ts';
import type { TurnPerson } from '../core/notes.ts';
import {
  compareTurns,
  outlineOf,
  type Pricing,
  type RecordedTurn,
  type TurnComparison,
  type TurnOutline,
  unrepeatable,
} from '../core/replay.ts';
import { ALL_RIGHTS } from '../core/rights.ts';
import type { UserEntry } from '../core/transcript.ts';
import type { Clock } from '../lib/clock.ts';
import type { ReplayStage } from './replay-stage.ts';
import { EVAL_CHANNEL } from './workbench.ts';

export type ReplayDeps = {
  readonly agent: Pick<Agent, 'prepare' | 'run'>;
  readonly stage: ReplayStage;
  readonly session: SessionKey;
  readonly person: TurnPerson;
  readonly clock: Clock;
  readonly pricing: Pricing;
  /** `record`: what the models said then; else the model that is asked now. */
  readonly model: 'record' | { readonly name: string; readonly thinkingBudget: number };
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
      }
  );

const ABOUT_CHARS = 70;

/** A model that fails is a turn that failed. @throws the signal's reason */
export async function replayTurn(
  deps: ReplayDeps,
  turn: RecordedTurn,
  signal: AbortSignal,
): Promise<PlayedTurn> {
  const { stage, agent, pricing, model, session, person } = deps;
  const { id, place } = turn;
  const words = turn.asked
    .map(({ text }) => text)
    .join(' ')
    .replace(/\s+/g, ' ');
  const named = { id, place, about: headOf(words, ABOUT_CHARS) };
  const [first] = turn.asked;
  if (first === undefined) return { ...named, kind: 'skipped', why: unrepeatable(turn) ?? '' };
  const why = model === 'record' ? unrepeatable(turn) : undefined;
  if (why !== undefined) return { ...named, kind: 'skipped', why };
  stage.put(turn);
  const input = inputOf(deps, turn, first);
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
  return { ...named, kind: 'played', recorded, played, comparison: { ...comparison, isSame } };
}

function inputOf(deps: ReplayDeps, turn: RecordedTurn, first: UserEntry): TurnInput {
  const { session, person, stage, model } = deps;
  const chat = chatOf(session);
  const messageOf = (entry: UserEntry, at: number): TurnMessage => ({
    seq: entry.seq ?? at,
    rights: ALL_RIGHTS,
    isForeign: entry.isForeign === true,
    message: {
      id: entry.messageId ?? messageId(`${turn.id}/asked/${at}`),
      chat,
      sender: { kind: 'system', source: 'webhook' },
      addressing: 'direct',
      text: entry.text,
      sentAt: deps.clock.now(),
      receivedAt: deps.clock.now(),
    },
  });
  const [, ...rest] = turn.asked;
  const steering = turn.steered.map((each, at) => ({ ...each, at: at + turn.asked.length }));
  const notRecorded = async () => 'Nobody is asked while a turn is played again.';
  return {
    turnId: turn.id,
    ...{ session, chat, person, rights: ALL_RIGHTS },
    messages: [messageOf(first, 0), ...rest.map((entry, at) => messageOf(entry, at + 1))],
    settings:
      model === 'record'
        ? { thinkingBudget: 0 }
        : { model: model.name, thinkingBudget: model.thinkingBudget },
    async steer() {
      const said = stage.own.filter(({ role }) => role === 'assistant').length;
      const due = steering.filter(({ after }) => after <= said);
      steering.splice(0, due.length);
      return due.map(({ entry, at }) => messageOf(entry, at));
    },
    say: async () => undefined,
    askOwner: notRecorded,
    post: async () => ({ status: 'failed', text: await notRecorded() }),
    ask: notRecorded,
  };
}

/** As the prompt names it. */
function chatOf(session: SessionKey): ChatRef {
  const fallback = { channel: EVAL_CHANNEL, account: DEFAULT_ACCOUNT, chat: chatId('replay') };
  return chatRefOf(session) ?? fallback;
}

// What the agent asked people, and how it stands: on disk, and in memory as it is on disk, so that no
// message costs a look into the store. A question is settled once, whoever comes first.

import { z } from 'zod';
import type { PersonQuestion } from '../../kernel/access/person.ts';
import type { Rights } from '../../kernel/access/rights.ts';
import type { MessageId, SessionKey, UserId } from '../../kernel/message/ids.ts';
import type { ChatRef, GroupRef } from '../../kernel/message/message.ts';
import { jsonRows, type OpenRows, type Rows } from '../../kernel/rows.ts';
import { type Holds, isOfChats } from '../../kernel/sessions/rules/forgetting.ts';
import { flag, kind, number, object, place, rowShape, text, texts } from '../../lib/json/json.ts';

export type AskState =
  | { readonly kind: 'open' | 'replaced' }
  /** `by`: the message that brings the answer to the agent. */
  | { readonly kind: 'answered'; readonly by: MessageId; readonly choice?: string }
  /** `toldIn`: the message with which the model is told. */
  | { readonly kind: 'expired'; readonly toldIn?: MessageId };

export type Ask = {
  /** `turnId/place of the call`: the same on every retry of the turn. */
  readonly id: string;
  readonly session: SessionKey;
  readonly chat: ChatRef;
  readonly group?: GroupRef;
  /** Whoever was asked, by every id they have. */
  readonly asked: readonly UserId[];
  readonly question: PersonQuestion;
  /** Of the turn that asked: the answer gives nobody more. */
  readonly rights: Rights;
  /** The question may hold words of others. */
  readonly isTainted: boolean;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly state: AskState;
};

const ASK = rowShape<Ask>({
  ...{ id: text, session: text, chat: place, asked: texts, rights: object, isTainted: flag },
  ...{ question: z.looseObject({ text, choices: texts }), at: number, state: kind },
});

/** Of one session; an answer is taken up by a turn that may have to be tried again. */
const KEPT_PER_SESSION = 3;

/** Oldest first. */
export const openAsks = (rows: OpenRows): Rows<Ask> =>
  rows({
    ...jsonRows(ASK),
    ...{ scope: 'asks', prefix: 'ask:', isCached: true },
    order: (one, other) => one.at - other.at,
  });

export async function asksOf(asks: Rows<Ask>, session: SessionKey): Promise<readonly Ask[]> {
  return (await asks.list()).filter((ask) => ask.session === session);
}

export async function addAsk(asks: Rows<Ask>, ask: Ask): Promise<void> {
  await asks.change(ask.id, () => ask);
  const earlier = (await asksOf(asks, ask.session)).filter(({ state }) => state.kind !== 'open');
  for (const { id } of earlier.slice(0, -KEPT_PER_SESSION)) await asks.change(id, () => 'remove');
}

/** Of these chats what is settled and holds the words; how many. */
export const eraseAsks = (asks: Rows<Ask>, chats: readonly string[], holds: Holds) =>
  asks.erase((ask) => {
    const { state, question } = ask;
    const isSettled = state.kind !== 'open';
    return isSettled && isOfChats(ask, chats) && holds(JSON.stringify({ question, state }));
  });

/** Moves on what still stands like this; whether it did. */
export async function settle(
  asks: Rows<Ask>,
  id: string,
  from: AskState,
  to: AskState,
): Promise<boolean> {
  const isFrom = ({ state }: Ask) => JSON.stringify(state) === JSON.stringify(from);
  const settled = await asks.change(id, (ask) =>
    ask !== undefined && isFrom(ask) ? { ...ask, state: to } : undefined,
  );
  return settled !== undefined;
}

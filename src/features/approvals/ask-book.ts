// What the agent asked people, and how it stands: on disk, and in memory as it is on disk, so that no
// message costs a look into the store. A question is settled once, whoever comes first.

import { z } from 'zod';
import type { PersonQuestion } from '../../kernel/access/person.ts';
import type { Rights } from '../../kernel/access/rights.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { MessageId, SessionKey, UserId } from '../../kernel/message/ids.ts';
import type { ChatRef, GroupRef } from '../../kernel/message/message.ts';
import type { Holds } from '../../kernel/sessions/rules/forgetting.ts';
import { readOnce } from '../../lib/async/lanes.ts';
import {
  flag,
  jsonRow,
  kind,
  number,
  object,
  place,
  rowShape,
  text,
  texts,
} from '../../lib/json/json-row.ts';

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

export const ASKS_SCOPE = 'asks';
const PREFIX = 'ask:';
/** Of one session; an answer is taken up by a turn that may have to be tried again. */
const KEPT_PER_SESSION = 3;

export class AskBook {
  readonly #state: KeyValueStore;
  readonly #asks = readOnce(() => this.#load());

  constructor(state: KeyValueStore) {
    this.#state = state;
  }

  async get(id: string): Promise<Ask | undefined> {
    return (await this.#asks()).get(id);
  }

  async all(): Promise<readonly Ask[]> {
    return [...(await this.#asks()).values()];
  }

  /** Oldest first. */
  async of(session: SessionKey): Promise<readonly Ask[]> {
    const asks = await this.#asks();
    if (asks.size === 0) return [];
    return [...asks.values()].filter((ask) => ask.session === session);
  }

  async add(ask: Ask): Promise<void> {
    const asks = await this.#asks();
    await this.#state.set(PREFIX + ask.id, JSON.stringify(ask));
    asks.set(ask.id, ask);
    const earlier = (await this.of(ask.session)).filter(({ state }) => state.kind !== 'open');
    for (const old of earlier.slice(0, -KEPT_PER_SESSION)) {
      await this.#state.delete(PREFIX + old.id);
      asks.delete(old.id);
    }
  }

  /** Lets go of what nobody comes back to. `before`: epoch milliseconds. */
  async expire(before: number): Promise<void> {
    const old = (await this.all()).filter(({ at }) => at < before);
    for (const { id } of old) {
      await this.#state.delete(PREFIX + id);
      (await this.#asks()).delete(id);
    }
  }

  /** Lets go of those of these chats that hold the words and are settled; how many. */
  async forget(chats: readonly string[], holds: Holds): Promise<number> {
    const settled = (await this.all()).filter(({ session, state, question }) => {
      const isTheirs = chats.includes(session.split('#', 1).join());
      return isTheirs && state.kind !== 'open' && holds(JSON.stringify({ question, state }));
    });
    for (const { id } of settled) {
      await this.#state.delete(PREFIX + id);
      (await this.#asks()).delete(id);
    }
    return settled.length;
  }

  /** Moves on what still stands like this; whether it did. */
  async settle(id: string, from: AskState, to: AskState): Promise<boolean> {
    const asks = await this.#asks();
    const ask = asks.get(id);
    if (ask === undefined || ask.state !== from) return false;
    const settled = { ...ask, state: to };
    // In memory first, so that nobody else settles it meanwhile.
    asks.set(id, settled);
    try {
      await this.#state.set(PREFIX + id, JSON.stringify(settled));
    } catch (error) {
      asks.set(id, ask);
      throw error;
    }
    return true;
  }

  async #load(): Promise<Map<string, Ask>> {
    const rows = await this.#state.list(PREFIX);
    const asks = rows.flatMap(({ value }) => jsonRow(value, ASK) ?? []);
    return new Map(asks.toSorted((a, b) => a.at - b.at).map((ask) => [ask.id, ask]));
  }
}

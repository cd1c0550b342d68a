// What owners have allowed for longer than once, on disk: read anew at each use, so that what is taken
// back, also beside a running gateway, holds at once. Uses stand in rows of their own: counting one
// brings nothing back.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { ToolAccess } from '../../kernel/access/rights.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import type { ChatRef, PersonSender } from '../../kernel/message/message.ts';
import type { Holds } from '../../kernel/sessions/rules/forgetting.ts';
import { flag, jsonRow, kind, number, place, rowShape, text } from '../../lib/json/json-row.ts';
import { isOfChats } from './approval-book.ts';

/** All that two calls have in common which one standing yes covers. */
export type StandingCall = {
  readonly tool: string;
  readonly access: ToolAccess;
  /** What is done, or to whom something is said, in one spelling. */
  readonly pattern: string;
  /** What it stands on beside that. */
  readonly seal?: string;
  readonly session: SessionKey;
  /** Who alone asks. */
  readonly whose: string;
};

export type StandingYes = Pick<StandingCall, 'tool' | 'access' | 'session' | 'whose'> & {
  /** Hexadecimal, of what it covers. */
  readonly id: string;
  /** What it is for, as an owner was shown it. */
  readonly about: string;
  /** Who asked, in words. */
  readonly asker: string;
  /** It was given where words of others were read, and holds there too. */
  readonly evenTainted: boolean;
  /** Who gave it. */
  readonly by: PersonSender;
  /** Where they did. */
  readonly at: ChatRef;
  /** Epoch milliseconds. */
  readonly givenAt: number;
  readonly days: number;
};

export type StandingUse = { readonly uses: number; readonly lastAt: number };

const PREFIX = 'always:';
const USED = 'used:';
/** Rows of yeses that hold no longer; none is given for longer. */
const KEPT_MS = 400 * 86_400_000;

export const keyOfStanding = ({ session, whose, tool, access, pattern, seal }: StandingCall) =>
  createHash('sha256')
    .update(JSON.stringify([session, whose, tool, access, pattern, seal]))
    .digest('hex');

const YES = rowShape<StandingYes>({
  ...{ id: text, tool: text, access: text, session: text, whose: text, about: text, asker: text },
  ...{ evenTainted: flag, by: kind, at: place, givenAt: number, days: number },
});
const USE = z.object({ uses: z.number(), lastAt: z.number() });

export class StandingBook {
  readonly #state: KeyValueStore;

  constructor(state: KeyValueStore) {
    this.#state = state;
  }

  async get(id: string): Promise<StandingYes | undefined> {
    const stored = await this.#state.get(`${PREFIX}${id}`);
    return stored === undefined ? undefined : jsonRow(stored, YES);
  }

  async put(yes: StandingYes): Promise<void> {
    await this.#state.set(`${PREFIX}${yes.id}`, JSON.stringify(yes));
  }

  async delete({ id }: Pick<StandingYes, 'id'>): Promise<void> {
    await this.#state.delete(`${PREFIX}${id}`);
    await this.#state.delete(`${USED}${id}`);
  }

  /** Oldest first. */
  async all(): Promise<readonly StandingYes[]> {
    const rows = await this.#state.list(PREFIX);
    return rows
      .flatMap(({ value }) => jsonRow(value, YES) ?? [])
      .sort((one, other) => one.givenAt - other.givenAt);
  }

  async used(id: string): Promise<StandingUse | undefined> {
    const stored = await this.#state.get(`${USED}${id}`);
    return stored === undefined ? undefined : jsonRow<StandingUse>(stored, USE);
  }

  async noteUse(id: string, now: number): Promise<void> {
    const { uses } = (await this.used(id)) ?? { uses: 0 };
    const use: StandingUse = { uses: uses + 1, lastAt: now };
    await this.#state.set(`${USED}${id}`, JSON.stringify(use));
  }

  /** Of these conversations what holds the words, so that it is asked about again; how many. */
  async forget(chats: readonly string[], holds: Holds): Promise<number> {
    const all = await this.all();
    const found = all.filter((yes) => isOfChats(yes, chats) && holds(yes.about));
    for (const yes of found) await this.delete(yes);
    return found.length;
  }

  async forgetOld(now: number): Promise<void> {
    await this.#state.expire(PREFIX, now - KEPT_MS);
    await this.#state.expire(USED, now - KEPT_MS);
  }
}

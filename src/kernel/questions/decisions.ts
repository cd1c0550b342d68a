// What features find of their questions beside asking: payloads, also after the end, and notes about
// decisions that the model is told later.

import type { RowShape } from '../../lib/json/json.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { MessageId, SessionKey } from '../message/ids.ts';
import type { Rows } from '../rows.ts';
import { type Holds, isOfChats } from '../sessions/rules/forgetting.ts';
import {
  type EndedQuestion,
  type Ending,
  type OpenQuestion,
  payloadOf,
  type QuestionRows,
  questionsOf,
} from './question-rows.ts';

/** Without an outcome while it is open. */
export type KnownQuestion = Pick<OpenQuestion, 'id' | 'subject' | 'session' | 'payload'> &
  Partial<Pick<OpenQuestion, 'chat' | 'chosen' | 'underWay'>> &
  Partial<Pick<EndedQuestion, 'outcome' | 'at'>>;

/** Of an earlier version; with an outcome where it was decided. */
type Adopted = Pick<OpenQuestion, 'id' | 'subject' | 'session' | 'payload' | 'hears'> &
  Pick<Ending, 'note' | 'toldIn'> & { readonly outcome?: string | undefined };

export function createDecisions(rows: QuestionRows, clock: Pick<Clock, 'now'>) {
  return {
    /** Those of a kind, of all conversations or one, decided or not; the ended have an outcome. */
    async known(kind: string, session?: SessionKey): Promise<readonly KnownQuestion[]> {
      const ended = await questionsOf(rows.ended, session);
      const all = [...ended, ...(await questionsOf(rows.open, session))];
      return all.filter(({ subject }) => subject.startsWith(`${kind}:`));
    },
    get: async (id: string): Promise<KnownQuestion | undefined> =>
      (await rows.open.get(id)) ?? (await rows.ended.get(id)),
    /** Changes the payload, also after the decision; returns whether it did. */
    async change<T extends object>(
      id: string,
      shape: RowShape<T>,
      step: (payload: T) => T | undefined,
    ): Promise<boolean> {
      const next = <Q extends { readonly payload?: object | undefined }>(each: Q | undefined) => {
        const before = each && payloadOf(each, shape);
        const payload = before && step(before);
        return each && payload && { ...each, payload };
      };
      const changed = (await rows.open.change(id, next)) ?? (await rows.ended.change(id, next));
      return changed !== undefined;
    },
    /** Keeps a decision that needed no question. */
    async keep(ended: Omit<EndedQuestion, 'at'>): Promise<void> {
      await rows.ended.change(ended.id, () => ({ ...ended, at: clock.now() }));
    },
    /** Takes over rows of an earlier version, which kept beside a question what it is about. */
    async adopt<T extends object>(
      earlier: Rows<T>,
      of: (row: T, id: string) => Adopted,
    ): Promise<void> {
      for (const [id, before] of await earlier.entries()) {
        const { outcome, note, toldIn, ...own } = of(before, id);
        const open = await rows.open.get(own.id);
        const kept = open && rows.open.write(own.id, { ...open, ...own });
        // What waited without a question is asked again by the turn that is repeated.
        const ended = outcome !== undefined && { ...own, outcome, note, toldIn, at: clock.now() };
        const row = kept ?? (ended !== false ? rows.ended.write(own.id, ended) : undefined);
        await earlier.change(
          id,
          () => 'remove',
          () => (row ? [row] : []),
        );
      }
    },
    /** Those of the conversation that the model is told of with this message; asked again, the same. */
    async toTell(
      session: SessionKey,
      message: MessageId,
      isMeant: (ended: EndedQuestion) => boolean,
    ): Promise<readonly EndedQuestion[]> {
      const due = (await questionsOf(rows.ended, session)).filter(
        (each) => each.note !== undefined && (each.toldIn ?? message) === message && isMeant(each),
      );
      for (const { id, toldIn } of due) {
        if (toldIn === undefined)
          await rows.ended.change(id, (each) => each && { ...each, toldIn: message });
      }
      return due;
    },
    /** Erases ended questions of these conversations that contain the words; returns how many. */
    forget: (chats: readonly string[], holds: Holds): Promise<number> =>
      rows.ended.erase(
        ({ session, payload }) =>
          session !== undefined && isOfChats({ session }, chats) && holds(JSON.stringify(payload)),
      ),
  };
}

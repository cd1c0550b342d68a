// The collections about people: what was decided about them, who they are on all channels, and
// which conversations were moved. Held in memory, because every message reads them.

import { z } from 'zod';
import { number, place, rowShape, text, texts } from '../../lib/json/json.ts';
import type { Role } from '../access/admission.ts';
import type { PersonRecord } from '../access/person.ts';
import { APPROVAL_POLICIES, type ApprovalPolicy, type ChosenPolicies } from '../access/rights.ts';
import type { RowWrite } from '../bus/bus.ts';
import type { KeyValueStore } from '../bus/store/store.ts';
import { type SessionKey, sessionKey } from '../message/ids.ts';
import type { ChatRef } from '../message/message.ts';
import { jsonRows, type LiveRows, type OpenRows } from '../rows.ts';

/** The scope of everything stored about people. */
export const PEOPLE_SCOPE = 'people';

/** A decision about a person by hand or by a code: one row per channel and id. */
export type Approval = {
  readonly channel: string;
  readonly userId: string;
  readonly name: string;
  readonly role: Role;
  readonly at: number;
  /** The chat in which the person can be reached, once they have written. */
  readonly chat?: string;
  /** For a block: all its ids, each of which has a row; revoking one revokes all. */
  readonly ids?: readonly string[];
};

/** A conversation that was moved. */
export type Move = {
  readonly to: ChatRef;
  /** Epoch milliseconds: earlier questions are answered there. */
  readonly at: number;
};

const APPROVAL = jsonRows(
  rowShape<Approval>({
    ...{ channel: text, userId: text, name: text, role: text, at: number },
    ids: texts.optional(),
  }),
);
const PERSON = rowShape<PersonRecord>({
  ...{ id: text, name: text, conversations: text },
  doors: z.array(z.looseObject({ channel: text, ids: texts })),
});
const POLICY = rowShape<{ readonly approvals: ApprovalPolicy }>({
  approvals: z.enum(APPROVAL_POLICIES),
});
const MOVE = rowShape<Move>({ to: place, at: number });

/** The name of a person's id on one channel. */
export const personIdKey = (channel: string, id: string) => `${channel}:${id}`;

/** The name of a private chat. */
export const privateChatKey = ({ channel, account, chat, thread }: ChatRef) =>
  JSON.stringify([channel, account, chat, thread]);

export type KnownPeople = {
  /** By `channel:userId`. */
  readonly approvals: ReadonlyMap<string, Approval>;
  /** Found also by their ids on channels and their private chats. */
  readonly persons: LiveRows<PersonRecord>;
};

export type PeopleRows = ReturnType<typeof openPeopleRows>;

/** `state`: of the scope of people. */
export function openPeopleRows(rows: OpenRows, state: KeyValueStore) {
  const cached = { scope: PEOPLE_SCOPE, isCached: true };
  const approvals = rows<Approval>({
    ...cached,
    prefix: 'approved:',
    // An unreadable row may have been a block.
    read: (json, id) => APPROVAL.read(json, id) ?? blocked(id),
    write: APPROVAL.write,
  });
  const persons = rows<PersonRecord>({
    ...{ ...cached, ...jsonRows(PERSON), prefix: 'person:' },
    write: (person) => JSON.stringify({ ...person, role: undefined }),
    keys: ({ doors }) =>
      doors.flatMap(({ channel, ids, chat }) => [
        ...ids.map((id) => personIdKey(channel, id)),
        ...(chat ? [privateChatKey(chat)] : []),
      ]),
  });

  return {
    approvals,
    persons,
    /** The conversation a chat takes part in, by the chat's own; only those that differ. */
    routes: rows<{ readonly session: SessionKey }>({
      ...{ ...cached, prefix: 'route:' },
      read: (session) => ({ session: sessionKey(session) }),
      write: ({ session }) => session,
    }),
    /** Approval policies that an owner chose, by role or by group as `channel:id`. */
    policies: rows({ ...cached, ...jsonRows(POLICY), prefix: 'policy:' }),
    /** By session. */
    moves: rows({ ...cached, ...jsonRows(MOVE), prefix: 'moved:' }),

    /** All people as stored, also later; reads the store only if another process wrote. */
    async known(): Promise<KnownPeople> {
      const [decided, all] = await Promise.all([approvals.live(), persons.live()]);
      return { approvals: decided.all, persons: all };
    },

    /** All in one transaction, whatever is stored. */
    async write(changes: readonly RowWrite[]): Promise<void> {
      await state.setMany(changes);
      for (const change of changes) await change.committed();
    },
  };
}

function blocked(key: string): Approval {
  const [, channel = '', userId = ''] = /^([^:]*):(.*)$/s.exec(key) ?? [];
  return { channel, userId, name: '', role: 'blocked', at: 0 };
}

export async function chosenPolicies({
  policies,
}: Pick<PeopleRows, 'policies'>): Promise<ChosenPolicies> {
  return new Map((await policies.entries()).map(([who, { approvals }]) => [who, approvals]));
}

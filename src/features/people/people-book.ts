// The rows about people, held in memory: asked at every message, changed rarely. What another process
// (a command) wrote is seen at the next question; reading them all again is cheap and rare.

import { z } from 'zod';
import type { PersonRecord } from '../../kernel/access/person.ts';
import type { KeyValueChange, KeyValueStore } from '../../kernel/bus/store/store.ts';
import { type PersonId, type SessionKey, sessionKey } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { jsonRow, number, place, rowShape, text, texts } from '../../lib/json/json.ts';
import type { Approval } from './approval.ts';

export type PeopleBookDeps = {
  readonly state: KeyValueStore;
  /** Another number once another process has written. */
  revision(): number;
};

/** A conversation that was moved. */
export type Move = {
  readonly to: ChatRef;
  /** Epoch milliseconds: questions up to then are answered there. */
  readonly at: number;
};

const APPROVAL = rowShape<Approval>({
  ...{ channel: text, userId: text, name: text, role: text, at: number },
  ids: texts.optional(),
});
const MOVE = rowShape<Move>({ to: place, at: number });
const PERSON = rowShape<PersonRecord>({
  ...{ id: text, name: text, conversations: text },
  doors: z.array(z.looseObject({ channel: text, ids: texts })),
});

export interface PeopleRows {
  /** By `channel:userId`. */
  readonly approvals: ReadonlyMap<string, Approval>;
  readonly persons: ReadonlyMap<PersonId, PersonRecord>;
  /** Whose door it is, by `channel:userId`. */
  readonly owners: ReadonlyMap<string, PersonId>;
  /** The conversation a chat takes part in, by the chat's own; those that are not their own. */
  readonly routes: ReadonlyMap<SessionKey, SessionKey>;
  readonly moves: ReadonlyMap<SessionKey, Move>;
}

export const ROWS = {
  approval: (channel: string, userId: string) => `approved:${channel}:${userId}`,
  person: (id: PersonId) => `person:${id}`,
  route: (own: SessionKey) => `route:${own}`,
  move: (session: SessionKey) => `moved:${session}`,
} as const;

const PREFIXES = ['approved:', 'person:', 'route:', 'moved:'] as const;

export class PeopleBook {
  readonly #deps: PeopleBookDeps;
  #known: { readonly revision: number; readonly rows: Promise<Rows> } | undefined;

  constructor(deps: PeopleBookDeps) {
    this.#deps = deps;
  }

  /** Without a look at the store, unless another process wrote. */
  rows(): Promise<PeopleRows> {
    const revision = this.#deps.revision();
    if (this.#known?.revision === revision) return this.#known.rows;
    const known = { revision, rows: this.#read() };
    this.#known = known;
    known.rows.catch(() => {
      if (this.#known === known) this.#known = undefined;
    });
    return known.rows;
  }

  /** Several rows in one transaction; rows of other kinds may be among them. */
  async write(changes: readonly KeyValueChange[]): Promise<void> {
    await this.#deps.state.setMany(changes);
    const rows = await this.#known?.rows;
    for (const change of changes) rows?.apply(change);
  }

  async #read(): Promise<Rows> {
    const { state } = this.#deps;
    const found = await Promise.all(PREFIXES.map((prefix) => state.list(prefix)));
    const rows = new Rows();
    for (const change of found.flat()) rows.apply(change);
    return rows;
  }
}

class Rows implements PeopleRows {
  readonly approvals = new Map<string, Approval>();
  readonly persons = new Map<PersonId, PersonRecord>();
  readonly owners = new Map<string, PersonId>();
  readonly routes = new Map<SessionKey, SessionKey>();
  readonly moves = new Map<SessionKey, Move>();

  apply({ key, value }: KeyValueChange): void {
    const [, prefix = '', name = ''] = /^([a-z]+:)(.*)$/s.exec(key) ?? [];
    switch (prefix) {
      case 'approved:':
        put(this.approvals, name, value, (json) => jsonRow(json, APPROVAL) ?? damaged(name));
        return;
      case 'person:':
        this.#putPerson(name as PersonId, value);
        return;
      case 'route:':
        put(this.routes, sessionKey(name), value, sessionKey);
        return;
      case 'moved:':
        put(this.moves, sessionKey(name), value, (json) => jsonRow(json, MOVE));
    }
  }

  #putPerson(id: PersonId, value: string | undefined): void {
    for (const key of doorKeys(this.persons.get(id))) {
      if (this.owners.get(key) === id) this.owners.delete(key);
    }
    put(this.persons, id, value, (json) => jsonRow(json, PERSON));
    for (const key of doorKeys(this.persons.get(id))) this.owners.set(key, id);
  }
}

export const doorKey = (channel: string, id: string) => `${channel}:${id}`;

function doorKeys(person: PersonRecord | undefined): readonly string[] {
  const doors = person?.doors ?? [];
  return doors.flatMap(({ channel, ids }) => ids.map((id) => doorKey(channel, id)));
}

/** What was decided cannot be read, and it may have been a block. */
function damaged(door: string): Approval {
  const [, channel = '', userId = ''] = /^([^:]*):(.*)$/s.exec(door) ?? [];
  return { channel, userId, name: '', role: 'blocked', at: 0 };
}

function put<K, V>(
  map: Map<K, V>,
  key: K,
  value: string | undefined,
  read: (value: string) => V | undefined,
): void {
  const row = value === undefined ? undefined : read(value);
  if (row === undefined) map.delete(key);
  else map.set(key, row);
}

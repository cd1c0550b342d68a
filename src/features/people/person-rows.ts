// Finding people in the rows about them, and the rows that keep them.

import { createHash } from 'node:crypto';
import {
  type ConfiguredGate,
  configuredRole,
  joinRoles,
  type Role,
} from '../../kernel/access/admission.ts';
import { mergePersons, type PersonDoor, type PersonRecord } from '../../kernel/access/person.ts';
import type { KeyValueChange } from '../../kernel/bus/store/store.ts';
import { type AccountId, type PersonId, personId, type UserId } from '../../kernel/message/ids.ts';
import { doorKey, type PeopleRows, ROWS } from './people-book.ts';

const ID_CHARS = 12;

/** The configured part of the gate, per channel. */
/** Without an account: the most that any of the channel's gives. */
export type GateOf = (channel: string, account?: AccountId) => ConfiguredGate;

export const personRow = (record: PersonRecord): KeyValueChange => ({
  key: ROWS.person(record.id),
  value: JSON.stringify({ ...record, role: undefined }),
});

export const goneRow = ({ id }: Pick<PersonRecord, 'id'>): KeyValueChange => ({
  key: ROWS.person(id),
  value: undefined,
});

/** The same for the same door, so that a repeat makes no second person; tells nothing about it. */
export function newId(channel: string, ids: readonly UserId[]): PersonId {
  const hash = createHash('sha256').update(doorKey(channel, ids[0] ?? ''));
  return personId(`p${hash.digest('hex').slice(0, ID_CHARS)}`);
}

/** Doors taken off a person keep what an owner allows whoever comes in by them. */
export function apartRows(
  rows: PeopleRows,
  { name, limits }: PersonRecord,
  doors: readonly PersonDoor[],
): readonly KeyValueChange[] {
  const [first] = doors;
  if (limits === undefined || first === undefined) return [];
  const { channel, ids } = first;
  const id = [newId(channel, ids), newId(`${channel}+`, ids)].find((one) => !rows.persons.has(one));
  if (id === undefined) return [];
  return [personRow({ id, name, doors, conversations: 'each', limits })];
}

/** Records that share one of the ids, joined: a platform may show two ids of one person late. */
export function recordOf(rows: PeopleRows, channel: string, ids: readonly string[]) {
  const [first, ...others] = recordsOf(rows, channel, ids);
  return first === undefined ? undefined : others.reduce(mergePersons, first);
}

export function doublesOf(
  rows: PeopleRows,
  channel: string,
  ids: readonly string[],
  kept: PersonId,
) {
  return recordsOf(rows, channel, ids).filter(({ id }) => id !== kept);
}

/** Whether two records turned out to be one person. */
export function hasDoubles(rows: PeopleRows, channel: string, ids: readonly string[]): boolean {
  return ids.length > 1 && recordsOf(rows, channel, ids).length > 1;
}

function recordsOf(rows: PeopleRows, channel: string, ids: readonly string[]) {
  const found = new Set(ids.flatMap((id) => rows.owners.get(doorKey(channel, id)) ?? []));
  return [...found].flatMap((id) => rows.persons.get(id) ?? []);
}

export function decidedOf(
  rows: PeopleRows,
  channel: string,
  ids: readonly string[],
): Role | undefined {
  return joinRoles(ids.map((id) => rows.approvals.get(doorKey(channel, id))?.role));
}

/** The most that any door gives: what was decided there, else what is configured; a block stands. */
export function roleOf(
  rows: PeopleRows,
  doors: readonly PersonDoor[],
  gateOf: GateOf,
): Role | undefined {
  const roles = doors.map(
    ({ channel, ids }) => decidedOf(rows, channel, ids) ?? configuredRole(ids, gateOf(channel)),
  );
  return joinRoles(roles);
}

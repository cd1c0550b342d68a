// Who was let in or blocked by the machine's user or an owner: one-time codes and approvals. Stored
// apart from the configuration, so that a tap on a link never rewrites a person's file.

import { hash, timingSafeEqual } from 'node:crypto';
import { listShape, number, rowShape, text } from '../../lib/json/json.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { type AdmittedRole, joinRoles, type Role } from '../access/admission.ts';
import type { RowWrite } from '../bus/bus.ts';
import type { PersonSender } from '../message/message.ts';
import { shortName } from '../message/untrusted.ts';
import { jsonRows, type OpenRows } from '../rows.ts';
import { type Approval, PEOPLE_SCOPE, type PeopleRows, personIdKey } from './people-rows.ts';

type PairingDeps = CodesDeps & { readonly peopleRows: PeopleRows };

type PersonIds = { readonly channel: string; readonly ids: readonly string[] };
type Named = { readonly channel: string; readonly name: string };

export type Pairing = ReturnType<typeof createPairing>;

export function createPairing(deps: PairingDeps) {
  const { peopleRows, clock } = deps;
  const codes = createPairingCodes(deps);

  function decided(who: Omit<Approval, 'role' | 'at'>, role: Role): RowWrite {
    const key = personIdKey(who.channel, who.userId);
    return peopleRows.approvals.write(key, { ...who, role, at: clock.now() });
  }

  /**
   * The rows that revoke a decision about this id, including the block of a person under all ids.
   */
  async function takenBack(channel: string, userId: string): Promise<readonly RowWrite[]> {
    const found = await peopleRows.approvals.get(personIdKey(channel, userId));
    if (found === undefined) return [];
    const { ids = [userId] } = found;
    return ids.map((id) => peopleRows.approvals.write(personIdKey(channel, id), undefined));
  }

  /** Sets the role of a person on all their channels. */
  async function approveAll(
    { doors, name }: { readonly doors: readonly PersonIds[]; readonly name: string },
    role: AdmittedRole,
  ): Promise<void> {
    const changes = doors.map(async ({ channel, ids }) => {
      const before = await Promise.all(ids.map((id) => takenBack(channel, id)));
      const first = ids.slice(0, 1).map((userId) => decided({ channel, userId, name }, role));
      return [...before.flat(), ...first];
    });
    await peopleRows.write((await Promise.all(changes)).flat());
  }

  return {
    /** A code that makes the first person who sends it on this channel its owner. */
    issueOwnerCode: (channel: string): Promise<IssuedCode> => codes.issue(channel),

    /** True if the code was valid; the sender is an owner from then on. */
    async redeem(
      channel: string,
      sender: PersonSender,
      chat: string,
      code: string,
    ): Promise<boolean> {
      const usedUp = await codes.redeem(channel, code);
      if (usedUp === undefined) return false;
      const who = { channel, userId: sender.id, name: shortName(sender.name), chat };
      await peopleRows.write([decided(who, 'owner'), usedUp]);
      return true;
    },

    /** What was decided about a person with these ids; undefined: nothing. */
    async roleOf(channel: string, userIds: readonly string[]): Promise<Role | undefined> {
      const found = userIds.map((id) => peopleRows.approvals.get(personIdKey(channel, id)));
      return joinRoles((await Promise.all(found)).map((approval) => approval?.role));
    },

    async list(): Promise<{ readonly approved: readonly Approval[] }> {
      return { approved: [...(await peopleRows.approvals.list())].sort(byPlace) };
    },

    approve: ({ channel, userId, name }: Named & { readonly userId: string }, role: AdmittedRole) =>
      approveAll({ doors: [{ channel, ids: [userId] }], name }, role),
    approveAll,
    /** Refused permanently under each of these ids, whatever else is configured. */
    block: ({ channel, ids, name }: Named & { readonly ids: readonly string[] }) =>
      peopleRows.write(ids.map((userId) => decided({ channel, userId, name, ids }, 'blocked'))),

    /** Revokes an approval or a block. True if there was one. */
    async revoke(channel: string, userId: string): Promise<boolean> {
      const rows = await takenBack(channel, userId);
      await peopleRows.write(rows);
      return rows.length > 0;
    },
  };
}

const byPlace = (one: Approval, other: Approval) =>
  one.channel.localeCompare(other.channel) || one.userId.localeCompare(other.userId);

// One-time codes that make their first sender the owner of a channel: stored as hashes,
// short-lived, few at a time, invalid after a few wrong guesses.

/** Without letters and digits that look alike. */
const CODE_ALPHABET = 'ABCDEFGHJKMNPQRSTVWXYZ23456789';
const CODE_LENGTH = 10;
const CODE_LIFETIME_MS = 30 * 60_000;
const MAX_TRIES = 10;
const MAX_PENDING_CODES = 3;

type PendingCode = { readonly hash: string; readonly expiresAt: number; readonly tries: number };

/** `expiresAt`: epoch milliseconds. */
type IssuedCode = { readonly code: string; readonly expiresAt: number };

const PENDING = listShape(rowShape<PendingCode>({ hash: text, expiresAt: number, tries: number }));

export type CodesDeps = {
  readonly rows: OpenRows;
  readonly clock: Clock;
  randomBytes(size: number): Uint8Array;
};

export function createPairingCodes({ rows, clock, randomBytes }: CodesDeps) {
  const byChannel = rows({ ...jsonRows(PENDING), scope: PEOPLE_SCOPE, prefix: 'codes:' });
  const good = (codes: readonly PendingCode[] = []) =>
    codes.filter((code) => code.expiresAt > clock.now() && code.tries < MAX_TRIES);

  return {
    async issue(channel: string): Promise<IssuedCode> {
      const code = randomCode(randomBytes);
      const expiresAt = clock.now() + CODE_LIFETIME_MS;
      const issued = { hash: hashOf(code), expiresAt, tries: 0 };
      await byChannel.change(channel, (codes) => [
        ...good(codes).slice(1 - MAX_PENDING_CODES),
        issued,
      ]);
      return { code, expiresAt };
    },

    /**
     * The row that uses up a valid code, to be written together with what it grants; undefined if
     * the code is wrong, which counts against all open ones.
     */
    async redeem(channel: string, code: string): Promise<RowWrite | undefined> {
      const codes = good(await byChannel.get(channel));
      const hash = hashOf(code.trim().toUpperCase());
      const match = codes.find((open) => equal(open.hash, hash));
      if (match !== undefined) {
        const rest = codes.filter((open) => open !== match);
        return byChannel.write(channel, rest);
      }
      await byChannel.change(channel, (pending) => {
        const tried = good(pending).map((open) => ({ ...open, tries: open.tries + 1 }));
        return tried.length === 0 ? undefined : tried;
      });
      return undefined;
    },
  };
}

export function randomCode(
  randomBytes: CodesDeps['randomBytes'],
  length: number = CODE_LENGTH,
): string {
  const letters = [...randomBytes(length)].map(
    (byte) => CODE_ALPHABET[byte % CODE_ALPHABET.length],
  );
  return letters.join('');
}

export const hashOf = (code: string) => hash('sha256', code);
export const equal = (a: string, b: string) => timingSafeEqual(Buffer.from(a), Buffer.from(b));

// Who was let in or blocked by the machine's user or an owner: one-time codes and approvals.
// Kept apart from the configuration, so that a tap on a link never rewrites a person's file.

import { createHash, timingSafeEqual } from 'node:crypto';
import { type AdmittedRole, joinRoles, type Role } from '../../kernel/access/admission.ts';
import type { PersonDoor } from '../../kernel/access/person.ts';
import type { RowWrite } from '../../kernel/bus/bus.ts';
import type { PersonSender } from '../../kernel/message/message.ts';
import { shortName } from '../../kernel/message/untrusted.ts';
import { jsonRows, type OpenRows } from '../../kernel/rows.ts';
import { listShape, number, rowShape, text } from '../../lib/json/json.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Approval } from './approval.ts';
import { doorKey, type PeopleBook, ROWS } from './people-book.ts';
import { PEOPLE_SCOPE, type Stranger, type Strangers } from './strangers.ts';

export type { Approval } from './approval.ts';

export interface Pairing {
  /** A code that makes the first person who sends it on this channel its owner. */
  issueOwnerCode(channel: string): Promise<IssuedCode>;
  /** True where the code was good; the sender is an owner from then on. */
  redeem(channel: string, sender: PersonSender, chat: string, code: string): Promise<boolean>;
  /** What was decided about a person of these ids; undefined: nothing. */
  roleOf(channel: string, userIds: readonly string[]): Promise<Role | undefined>;
  list(): Promise<{ readonly approved: readonly Approval[] }>;
  approve(
    who: { readonly channel: string; readonly userId: string; readonly name: string },
    role: AdmittedRole,
  ): Promise<void>;
  /** What a person is over all their doors. */
  approveAll(
    who: { readonly doors: readonly Pick<PersonDoor, 'channel' | 'ids'>[]; readonly name: string },
    role: AdmittedRole,
  ): Promise<void>;
  /** Refused for good under each of these ids, whatever else is configured. */
  block(who: {
    readonly channel: string;
    readonly ids: readonly string[];
    readonly name: string;
  }): Promise<void>;
  /** Takes back an approval or a block. True where there was something to take back. */
  revoke(channel: string, userId: string): Promise<boolean>;
}

export type PairingDeps = CodesDeps & { readonly book: PeopleBook };

export function createPairing(deps: PairingDeps): Pairing {
  const { book, clock } = deps;
  const codes = createPairingCodes(deps);

  function row(who: Omit<Approval, 'role' | 'at'>, role: Role) {
    const approval: Approval = { ...who, role, at: clock.now() };
    return { key: ROWS.approval(who.channel, who.userId), value: JSON.stringify(approval) };
  }

  const decided = async (channel: string, userId: string) =>
    (await book.rows()).approvals.get(doorKey(channel, userId));

  /** The rows that take back what was decided about this id, and with it about a blocked person. */
  async function takenBack(channel: string, userId: string) {
    const found = await decided(channel, userId);
    if (found === undefined) return [];
    const { ids = [userId] } = found;
    return ids.map((id) => ({ key: ROWS.approval(channel, id), value: undefined }));
  }

  return {
    issueOwnerCode: (channel) => codes.issue(channel),

    async redeem(channel, sender, chat, code) {
      const usedUp = await codes.redeem(channel, code);
      if (usedUp === undefined) return false;
      const who = { channel, userId: sender.id, name: shortName(sender.name), chat };
      await book.write([row(who, 'owner'), usedUp]);
      return true;
    },

    async roleOf(channel, userIds) {
      const found = await Promise.all(userIds.map((id) => decided(channel, id)));
      return joinRoles(found.map((approval) => approval?.role));
    },

    async list() {
      const { approvals } = await book.rows();
      return { approved: [...approvals.values()].sort(byPlace) };
    },

    async approve({ channel, userId, name }, role) {
      const before = await takenBack(channel, userId);
      await book.write([...before, row({ channel, userId, name }, role)]);
    },
    async approveAll({ doors, name }, role) {
      const changes = doors.map(async ({ channel, ids }) => {
        const before = await Promise.all(ids.map((id) => takenBack(channel, id)));
        const [userId] = ids;
        return [
          ...before.flat(),
          ...(userId === undefined ? [] : [row({ channel, userId, name }, role)]),
        ];
      });
      await book.write((await Promise.all(changes)).flat());
    },
    block: ({ channel, ids, name }) =>
      book.write(ids.map((userId) => row({ channel, userId, name, ids }, 'blocked'))),

    async revoke(channel, userId) {
      const rows = await takenBack(channel, userId);
      await book.write(rows);
      return rows.length > 0;
    },
  };
}

const byPlace = (one: Approval, other: Approval) =>
  one.channel.localeCompare(other.channel) || one.userId.localeCompare(other.userId);

// One-time codes that make their first sender the owner of a channel: kept as hashes, short-lived,
// few at a time, worthless after a few wrong guesses.

/** No letters or digits that look alike. */
const CODE_ALPHABET = 'ABCDEFGHJKMNPQRSTVWXYZ23456789';
const CODE_LENGTH = 10;
const CODE_LIFETIME_MS = 30 * 60_000;
const MAX_TRIES = 10;
const MAX_PENDING_CODES = 3;

type PendingCode = { readonly hash: string; readonly expiresAt: number; readonly tries: number };

/** `expiresAt`: epoch milliseconds. */
export type IssuedCode = { readonly code: string; readonly expiresAt: number };

const PENDING = listShape(rowShape<PendingCode>({ hash: text, expiresAt: number, tries: number }));

export type CodesDeps = {
  readonly rows: OpenRows;
  readonly clock: Clock;
  randomBytes(size: number): Uint8Array;
};

export interface PairingCodes {
  issue(channel: string): Promise<IssuedCode>;
  /**
   * The row that uses a good code up, to be written together with what it grants; undefined where
   * the code is wrong, which counts against all that are open.
   */
  redeem(channel: string, code: string): Promise<RowWrite | undefined>;
}

export function createPairingCodes({ rows, clock, randomBytes }: CodesDeps): PairingCodes {
  const byChannel = rows({ ...jsonRows(PENDING), scope: PEOPLE_SCOPE, prefix: 'codes:' });
  const good = (codes: readonly PendingCode[] = []) =>
    codes.filter((code) => code.expiresAt > clock.now() && code.tries < MAX_TRIES);

  return {
    async issue(channel) {
      const code = randomCode(randomBytes);
      const expiresAt = clock.now() + CODE_LIFETIME_MS;
      const issued = { hash: hashOf(code), expiresAt, tries: 0 };
      await byChannel.change(channel, (codes) => [
        ...good(codes).slice(1 - MAX_PENDING_CODES),
        issued,
      ]);
      return { code, expiresAt };
    },

    async redeem(channel, code) {
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

export const hashOf = (code: string) => createHash('sha256').update(code).digest('hex');
export const equal = (a: string, b: string) => timingSafeEqual(Buffer.from(a), Buffer.from(b));

// The code a stranger is given to tell the owner: once per person, few open at a time, short-lived,
// kept as a hash. It grants nothing by itself; an owner has to name it.

export const STRANGER_CODE_MINUTES = 30;
const LIFETIME_MS = STRANGER_CODE_MINUTES * 60_000;
/** Per channel; with the lifetime this bounds how many codes a flood of strangers gets in an hour. */
const MAX_OPEN_CODES = 3;

export type StrangerCodesDeps = {
  readonly strangers: Strangers;
  readonly now: () => number;
  randomBytes(size: number): Uint8Array;
};

/** A code for them; undefined where they had one already, or too many are open. */
export async function issueStrangerCode(
  stranger: Stranger,
  { strangers, now, randomBytes }: StrangerCodesDeps,
): Promise<string | undefined> {
  if (stranger.code !== undefined) return undefined;
  const open = (await strangers.list()).filter(
    ({ channel, code }) => channel === stranger.channel && isOpen(code, now()),
  );
  if (open.length >= MAX_OPEN_CODES) return undefined;
  const code = randomCode(randomBytes);
  await strangers.note(stranger, {
    code: { hash: hashOf(code), expiresAt: now() + LIFETIME_MS },
  });
  return code;
}

export function holdsCode({ code }: Stranger, typed: string, now: number): boolean {
  return isOpen(code, now) && code?.hash === hashOf(typed.toUpperCase());
}

const isOpen = (code: Stranger['code'], now: number) => code !== undefined && code.expiresAt > now;

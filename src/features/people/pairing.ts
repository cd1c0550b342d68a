// Who was let in or blocked by the machine's user or an owner: one-time codes and approvals.
// Kept apart from the configuration, so that a tap on a link never rewrites a person's file.

import { type AdmittedRole, joinRoles, type Role } from '../../kernel/access/admission.ts';
import type { PersonDoor } from '../../kernel/access/person.ts';
import type { PersonSender } from '../../kernel/message/message.ts';
import { shortName } from '../../kernel/message/untrusted.ts';
import type { Approval } from './approval.ts';
import { type CodesDeps, createPairingCodes, type IssuedCode } from './pairing-codes.ts';
import { doorKey, type PeopleBook, ROWS } from './people-book.ts';

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

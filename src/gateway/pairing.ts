// Who was let in or blocked by the machine's user or an owner: one-time codes and approvals.
// Kept apart from the configuration, so that a tap on a link never rewrites a person's file.

import { type AdmittedRole, joinRoles, type Role } from '../core/admission.ts';
import type { PersonSender } from '../core/message.ts';
import { shortName } from '../core/stranger-words.ts';
import { type CodesDeps, createPairingCodes, type IssuedCode } from './pairing-codes.ts';

export type Approval = {
  readonly channel: string;
  readonly userId: string;
  readonly name: string;
  readonly role: Role;
  readonly at: number;
  /** Where this person can be reached, once they have written. */
  readonly chat?: string;
  /** Of a block: all the ids it holds for, each of which has a row; taking one back takes all. */
  readonly ids?: readonly string[];
};

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
  /** Refused for good under each of these ids, whatever else is configured. */
  block(who: {
    readonly channel: string;
    readonly ids: readonly string[];
    readonly name: string;
  }): Promise<void>;
  /** Takes back an approval or a block. True where there was something to take back. */
  revoke(channel: string, userId: string): Promise<boolean>;
}

export function createPairing(deps: CodesDeps): Pairing {
  const { state, clock } = deps;
  const codes = createPairingCodes(deps);

  function row(who: Omit<Approval, 'role' | 'at'>, role: Role) {
    const approval: Approval = { ...who, role, at: clock.now() };
    return { key: approvalKey(who.channel, who.userId), value: JSON.stringify(approval) };
  }

  /** The rows that take back what was decided about this id, and with it about a blocked person. */
  async function takenBack(channel: string, userId: string) {
    const stored = await state.get(approvalKey(channel, userId));
    if (stored === undefined) return [];
    const { ids = [userId] }: Approval = JSON.parse(stored);
    return ids.map((id) => ({ key: approvalKey(channel, id), value: undefined }));
  }

  return {
    issueOwnerCode: (channel) => codes.issue(channel),

    async redeem(channel, sender, chat, code) {
      const usedUp = await codes.redeem(channel, code);
      if (usedUp === undefined) return false;
      const who = { channel, userId: sender.id, name: shortName(sender.name), chat };
      await state.setMany([row(who, 'owner'), usedUp]);
      return true;
    },

    async roleOf(channel, userIds) {
      const rows = await Promise.all(userIds.map((id) => state.get(approvalKey(channel, id))));
      const found: readonly Approval[] = rows
        .flatMap((row) => row ?? [])
        .map((row) => JSON.parse(row));
      return joinRoles(found.map(({ role }) => role));
    },

    async list() {
      const rows = await state.list('approved:');
      return { approved: rows.map(({ value }): Approval => JSON.parse(value)) };
    },

    async approve({ channel, userId, name }, role) {
      const before = await takenBack(channel, userId);
      await state.setMany([...before, row({ channel, userId, name }, role)]);
    },
    block: ({ channel, ids, name }) =>
      state.setMany(ids.map((userId) => row({ channel, userId, name, ids }, 'blocked'))),

    async revoke(channel, userId) {
      const rows = await takenBack(channel, userId);
      await state.setMany(rows);
      return rows.length > 0;
    },
  };
}

const approvalKey = (channel: string, userId: string) => `approved:${channel}:${userId}`;

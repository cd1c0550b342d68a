// Who was let in by the machine's user: one-time codes, approvals and the strangers who knocked.
// Kept apart from the configuration, so that a tap on a link never rewrites a person's file.

import { type AdmittedRole, joinRoles, type Role } from '../core/admission.ts';
import type { PersonSender } from '../core/message.ts';
import { type CodesDeps, createPairingCodes, type IssuedCode } from './pairing-codes.ts';

const MAX_STRANGERS = 100;
const MAX_NAME_CHARS = 64;

export type Approval = {
  readonly channel: string;
  readonly userId: string;
  readonly name: string;
  readonly role: Role;
  readonly at: number;
  /** Where this person can be reached, once they have written. */
  readonly chat?: string;
};

export type Stranger = {
  readonly channel: string;
  readonly userId: string;
  readonly name: string;
  readonly at: number;
};

export interface Pairing {
  /** A code that makes the first person who sends it on this channel its owner. */
  issueOwnerCode(channel: string): Promise<IssuedCode>;
  /** True where the code was good; the sender is an owner from then on. */
  redeem(channel: string, sender: PersonSender, chat: string, code: string): Promise<boolean>;
  /** What was decided about a person of these ids; undefined: nothing. */
  roleOf(channel: string, userIds: readonly string[]): Promise<Role | undefined>;
  noteStranger(channel: string, sender: PersonSender): Promise<void>;
  list(): Promise<{
    readonly approved: readonly Approval[];
    readonly pending: readonly Stranger[];
  }>;
  approve(channel: string, userId: string, role: AdmittedRole): Promise<void>;
  /** Refused for good under each of these ids, whatever else is configured. */
  block(channel: string, userIds: readonly string[]): Promise<void>;
  /** Takes back an approval or a block. True where there was something to take back. */
  revoke(channel: string, userId: string): Promise<boolean>;
}

export function createPairing(deps: CodesDeps): Pairing {
  const { state, clock } = deps;
  const codes = createPairingCodes(deps);

  async function savedStranger(channel: string, userId: string): Promise<Stranger | undefined> {
    const stored = await state.get(strangerKey(channel, userId));
    return stored === undefined ? undefined : JSON.parse(stored);
  }

  async function decide(channel: string, userIds: readonly string[], role: Role) {
    const rows = await Promise.all(
      userIds.map(async (userId) => {
        const name = (await savedStranger(channel, userId))?.name ?? '';
        const approval: Approval = { channel, userId, name, role, at: clock.now() };
        return [
          { key: approvalKey(channel, userId), value: JSON.stringify(approval) },
          { key: strangerKey(channel, userId), value: undefined },
        ];
      }),
    );
    await state.setMany(rows.flat());
  }

  return {
    issueOwnerCode: (channel) => codes.issue(channel),

    async redeem(channel, sender, chat, code) {
      const usedUp = await codes.redeem(channel, code);
      if (usedUp === undefined) return false;
      const approval: Approval = {
        channel,
        userId: sender.id,
        name: shortName(sender.name),
        role: 'owner',
        at: clock.now(),
        chat,
      };
      await state.setMany([
        { key: approvalKey(channel, sender.id), value: JSON.stringify(approval) },
        { key: strangerKey(channel, sender.id), value: undefined },
        usedUp,
      ]);
      return true;
    },

    async roleOf(channel, userIds) {
      const rows = await Promise.all(userIds.map((id) => state.get(approvalKey(channel, id))));
      const found: readonly Approval[] = rows
        .flatMap((row) => row ?? [])
        .map((row) => JSON.parse(row));
      return joinRoles(found.map(({ role }) => role));
    },

    async noteStranger(channel, sender) {
      if ((await savedStranger(channel, sender.id)) !== undefined) return;
      const known = await state.list('stranger:', { limit: MAX_STRANGERS });
      if (known.length >= MAX_STRANGERS) return;
      const stranger: Stranger = {
        channel,
        userId: sender.id,
        name: shortName(sender.name),
        at: clock.now(),
      };
      await state.set(strangerKey(channel, sender.id), JSON.stringify(stranger));
    },

    async list() {
      const [approved, pending] = await Promise.all([
        state.list('approved:'),
        state.list('stranger:'),
      ]);
      return {
        approved: approved.map((row): Approval => JSON.parse(row.value)),
        pending: pending.map((row): Stranger => JSON.parse(row.value)),
      };
    },

    approve: (channel, userId, role) => decide(channel, [userId], role),
    block: (channel, userIds) => decide(channel, userIds, 'blocked'),

    async revoke(channel, userId) {
      const keys = [approvalKey(channel, userId), strangerKey(channel, userId)];
      const present = await Promise.all(keys.map((key) => state.get(key)));
      await state.setMany(keys.map((key) => ({ key, value: undefined })));
      return present.some((value) => value !== undefined);
    },
  };
}

const approvalKey = (channel: string, userId: string) => `approved:${channel}:${userId}`;
const strangerKey = (channel: string, userId: string) => `stranger:${channel}:${userId}`;
/** Display names are shown in terminals and logs: control characters go. */
function shortName(name = ''): string {
  return name.replace(/\p{C}/gu, '').slice(0, MAX_NAME_CHARS).toWellFormed();
}

// Who was let in by the machine's user: one-time codes, approvals and the strangers who knocked.
// Kept apart from the configuration, so that a tap on a link never rewrites a person's file.

import { createHash, timingSafeEqual } from 'node:crypto';
import type { PersonSender } from '../core/message.ts';
import type { Clock } from '../lib/clock.ts';
import type { KeyValueStore } from '../store/store.ts';

/** No letters or digits that look alike. */
const CODE_ALPHABET = 'ABCDEFGHJKMNPQRSTVWXYZ23456789';
const CODE_LENGTH = 10;
const CODE_LIFETIME_MS = 30 * 60_000;
const MAX_TRIES = 10;
const MAX_PENDING_CODES = 3;
const MAX_STRANGERS = 100;
const MAX_NAME_CHARS = 64;

export type Approval = {
  readonly channel: string;
  readonly userId: string;
  readonly name: string;
  readonly role: 'owner' | 'trusted';
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

type PendingCode = { readonly hash: string; readonly expiresAt: number; readonly tries: number };

export interface Pairing {
  /** A code that makes the first person who sends it on this channel its owner. */
  issueOwnerCode(channel: string): Promise<{ readonly code: string; readonly expiresAt: number }>;
  /** True where the code was good; the sender is approved as owner from then on. */
  redeem(channel: string, sender: PersonSender, chat: string, code: string): Promise<boolean>;
  isApproved(channel: string, userId: string): Promise<boolean>;
  noteStranger(channel: string, sender: PersonSender): Promise<void>;
  list(): Promise<{
    readonly approved: readonly Approval[];
    readonly pending: readonly Stranger[];
  }>;
  approve(channel: string, userId: string): Promise<void>;
  /** True where there was something to revoke. */
  revoke(channel: string, userId: string): Promise<boolean>;
}

export type PairingDeps = {
  readonly state: KeyValueStore;
  readonly clock: Clock;
  randomBytes(size: number): Uint8Array;
};

export function createPairing({ state, clock, randomBytes }: PairingDeps): Pairing {
  async function pendingCodes(channel: string): Promise<readonly PendingCode[]> {
    const stored = await state.get(`codes:${channel}`);
    const codes: readonly PendingCode[] = stored === undefined ? [] : JSON.parse(stored);
    return codes.filter((code) => code.expiresAt > clock.now() && code.tries < MAX_TRIES);
  }

  async function savedStranger(channel: string, userId: string): Promise<Stranger | undefined> {
    const stored = await state.get(strangerKey(channel, userId));
    return stored === undefined ? undefined : JSON.parse(stored);
  }

  return {
    async issueOwnerCode(channel) {
      const code = [...randomBytes(CODE_LENGTH)]
        .map((byte) => CODE_ALPHABET[byte % CODE_ALPHABET.length])
        .join('');
      const expiresAt = clock.now() + CODE_LIFETIME_MS;
      const earlier = (await pendingCodes(channel)).slice(1 - MAX_PENDING_CODES);
      const codes = [...earlier, { hash: hashOf(code), expiresAt, tries: 0 }];
      await state.set(`codes:${channel}`, JSON.stringify(codes));
      return { code, expiresAt };
    },

    async redeem(channel, sender, chat, code) {
      const codes = await pendingCodes(channel);
      const hash = hashOf(code.trim().toUpperCase());
      const match = codes.find((pending) => equal(pending.hash, hash));
      if (match === undefined) {
        const tried = codes.map((pending) => ({ ...pending, tries: pending.tries + 1 }));
        if (tried.length > 0) await state.set(`codes:${channel}`, JSON.stringify(tried));
        return false;
      }
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
        {
          key: `codes:${channel}`,
          value: JSON.stringify(codes.filter((pending) => pending !== match)),
        },
      ]);
      return true;
    },

    isApproved: async (channel, userId) =>
      (await state.get(approvalKey(channel, userId))) !== undefined,

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

    async approve(channel, userId) {
      const stranger = await savedStranger(channel, userId);
      const approval: Approval = {
        channel,
        userId,
        name: stranger?.name ?? '',
        role: 'trusted',
        at: clock.now(),
      };
      await state.setMany([
        { key: approvalKey(channel, userId), value: JSON.stringify(approval) },
        { key: strangerKey(channel, userId), value: undefined },
      ]);
    },

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
const hashOf = (code: string) => createHash('sha256').update(code).digest('hex');
const equal = (a: string, b: string) => timingSafeEqual(Buffer.from(a), Buffer.from(b));

/** Display names are shown in terminals and logs: control characters go. */
function shortName(name = ''): string {
  return name.replace(/\p{C}/gu, '').slice(0, MAX_NAME_CHARS).toWellFormed();
}

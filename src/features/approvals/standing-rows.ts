// What owners have allowed for longer than once, on disk: read anew at each use, so that what is taken
// back, also beside a running gateway, holds at once. Uses stand in rows of their own: counting one
// brings nothing back.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { ToolAccess } from '../../kernel/access/rights.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import type { ChatRef, PersonSender } from '../../kernel/message/message.ts';
import { jsonRows, type OpenRows, type Rows } from '../../kernel/rows.ts';
import { type Holds, isOfChats } from '../../kernel/sessions/rules/forgetting.ts';
import { flag, kind, number, place, rowShape, text } from '../../lib/json/json.ts';
import { APPROVALS_SCOPE } from './approval-rows.ts';

/** All that two calls have in common which one standing yes covers. */
export type StandingCall = {
  readonly tool: string;
  readonly access: ToolAccess;
  /** What is done, or to whom something is said, in one spelling. */
  readonly pattern: string;
  /** What it stands on beside that. */
  readonly seal?: string;
  readonly session: SessionKey;
  /** Who alone asks. */
  readonly whose: string;
};

export type StandingYes = Pick<StandingCall, 'tool' | 'access' | 'session' | 'whose'> & {
  /** Hexadecimal, of what it covers. */
  readonly id: string;
  /** What it is for, as an owner was shown it. */
  readonly about: string;
  /** Who asked, in words. */
  readonly asker: string;
  /** It was given where words of others were read, and holds there too. */
  readonly evenTainted: boolean;
  /** Who gave it. */
  readonly by: PersonSender;
  /** Where they did. */
  readonly at: ChatRef;
  /** Epoch milliseconds. */
  readonly givenAt: number;
  readonly days: number;
};

export type StandingUse = { readonly uses: number; readonly lastAt: number };

/** Rows of yeses that hold no longer; none is given for longer. */
const KEPT_MS = 400 * 86_400_000;

export const keyOfStanding = ({ session, whose, tool, access, pattern, seal }: StandingCall) =>
  createHash('sha256')
    .update(JSON.stringify([session, whose, tool, access, pattern, seal]))
    .digest('hex');

const YES = rowShape<StandingYes>({
  ...{ id: text, tool: text, access: text, session: text, whose: text, about: text, asker: text },
  ...{ evenTainted: flag, by: kind, at: place, givenAt: number, days: number },
});
const USE = z.object({ uses: z.number(), lastAt: z.number() });

export type StandingRows = {
  /** Oldest first. */
  readonly yeses: Rows<StandingYes>;
  /** By the id of what is used. */
  readonly uses: Rows<StandingUse>;
};

export const openStandingRows = (rows: OpenRows): StandingRows => ({
  yeses: rows({
    ...jsonRows(YES),
    ...{ scope: APPROVALS_SCOPE, prefix: 'always:' },
    order: (one, other) => one.givenAt - other.givenAt,
  }),
  uses: rows({ ...jsonRows<StandingUse>(USE), scope: APPROVALS_SCOPE, prefix: 'used:' }),
});

export async function removeStanding({ yeses, uses }: StandingRows, id: string): Promise<void> {
  await yeses.change(
    id,
    () => 'remove',
    () => [uses.write(id, undefined)],
  );
}

export async function noteUse({ uses }: StandingRows, id: string, now: number): Promise<void> {
  await uses.change(id, (use) => ({ uses: (use?.uses ?? 0) + 1, lastAt: now }));
}

/** Of these conversations what holds the words, so that it is asked about again; how many. */
export async function eraseStanding(
  rows: StandingRows,
  chats: readonly string[],
  holds: Holds,
): Promise<number> {
  const all = await rows.yeses.list();
  const found = all.filter((yes) => isOfChats(yes, chats) && holds(yes.about));
  for (const { id } of found) await removeStanding(rows, id);
  return found.length;
}

/** Removes those that hold no longer. */
export async function expireStanding({ yeses, uses }: StandingRows, now: number): Promise<void> {
  await yeses.expire(now - KEPT_MS);
  await uses.expire(now - KEPT_MS);
}

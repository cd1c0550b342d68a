// The mails an owner was shown or is to be shown, and how far each is: on disk, and in memory as they
// are on disk, so that no message of the owner costs a look into the store.

import { z } from 'zod';
import type { MessageId } from '../../kernel/message/ids.ts';
import { type ChatRef, sessionKeyOf } from '../../kernel/message/message.ts';
import { chosenLast } from '../../kernel/questions/question-rows.ts';
import { jsonRows, MARKS, type OpenRows, type Rows } from '../../kernel/rows.ts';
import { kind, number, place, rowShape, text, texts } from '../../lib/json/json.ts';
import type { MailNote } from './rules/bridge.ts';
import type { MailSummary } from './rules/summary.ts';

export type MailStage =
  /** To be shown as soon as may be. */
  | { readonly kind: 'waiting' }
  /** `isAsked`: the question is surely on disk too. */
  | { readonly kind: 'shown'; readonly chat: ChatRef; readonly isAsked: boolean }
  /** Epoch milliseconds. */
  | { readonly kind: 'snoozed'; readonly until: number }
  /** What the owner writes next in the chat is the answer. */
  | { readonly kind: 'writing'; readonly chat: ChatRef; readonly until: number }
  | {
      readonly kind: 'drafted';
      readonly chat: ChatRef;
      readonly text: string;
      /** The messages it was written in. */
      readonly by: readonly MessageId[];
      readonly hasFiles: boolean;
      readonly isAsked: boolean;
    }
  | { readonly kind: 'archiving'; readonly chat: ChatRef };

export type BridgedMail = {
  readonly id: MessageId;
  readonly chat: ChatRef;
  readonly note: MailNote;
  /** Undefined where the note says it all. */
  readonly summary?: MailSummary;
  /** Number of the newest question about it; 0: none yet. */
  readonly round: number;
  readonly stage: MailStage;
  /** Epoch milliseconds. */
  readonly at: number;
};

export const BRIDGE_SCOPE = 'mail-bridge';
const KEEP_DONE_MS = 30 * 86_400_000;

const MAIL = rowShape<BridgedMail>({
  ...{ id: text, chat: place, round: number, stage: kind, at: number },
  note: z.looseObject({ address: text, name: text, subject: text, lines: texts, files: texts }),
});

export type BridgeRows = {
  /** Oldest first. */
  readonly mails: Rows<BridgedMail>;
  /** Dealt with, so that the same mail handed over again is not shown again. */
  readonly done: Rows<object>;
};

export const openBridgeRows = (rows: OpenRows): BridgeRows => ({
  mails: rows({
    ...jsonRows(MAIL),
    ...{ scope: BRIDGE_SCOPE, prefix: 'mail:', isCached: true },
    order: (one, other) => one.at - other.at,
  }),
  done: rows({ ...MARKS, scope: BRIDGE_SCOPE, prefix: 'done:' }),
});

/** The mail for which the owner writes, or wrote by this message, in the chat. */
export async function writtenIn(
  { mails }: BridgeRows,
  chat: ChatRef,
  message: MessageId,
): Promise<BridgedMail | undefined> {
  const place = sessionKeyOf(chat);
  const all = await mails.list();
  const taken = all.find(({ stage }) => stage.kind === 'drafted' && stage.by.includes(message));
  const writing = all.filter(
    ({ stage }) => stage.kind === 'writing' && sessionKeyOf(stage.chat) === place,
  );
  return taken ?? chosenLast(writing, ({ stage }) => ('until' in stage ? stage.until : undefined));
}

/** Keeps a mail that was not seen before. */
export async function addMail({ mails, done }: BridgeRows, mail: BridgedMail): Promise<void> {
  if ((await done.get(mail.id)) !== undefined) return;
  await mails.change(mail.id, (known) => (known === undefined ? mail : undefined));
}

/**
 * `step` gives the next form of the mail, `done` where it is dealt with, or undefined to leave it.
 * Returns whether anything changed.
 */
export async function changeMail(
  { mails, done }: BridgeRows,
  id: string,
  step: (mail: BridgedMail) => BridgedMail | 'done' | undefined,
): Promise<boolean> {
  const changed = await mails.change(
    id,
    (mail) => {
      const next = mail && step(mail);
      return next === 'done' ? 'remove' : next;
    },
    (_mail, isRemoved) => (isRemoved ? [done.write(id, {})] : []),
  );
  return changed !== undefined;
}

/** Removes what was dealt with long ago. */
export const expireDone = ({ done }: BridgeRows, now: number): Promise<number> =>
  done.expire(now - KEEP_DONE_MS);

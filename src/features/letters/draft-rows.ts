// Stored letters that need an approval, from the request to the end, and the chats that letters
// were sent to. Cached in memory, because every message is checked for being a new text.

import { createHash } from 'node:crypto';
import type { Rights } from '../../kernel/access/rights.ts';
import type { AskingTurn } from '../../kernel/guards.ts';
import type { MessageId } from '../../kernel/message/ids.ts';
import type { Letter } from '../../kernel/message/message.ts';
import { type ChatRef, sessionKeyOf } from '../../kernel/message/message.ts';
import { chosenLast } from '../../kernel/questions/question-rows.ts';
import { jsonRows, MARKS, type OpenRows, type Rows } from '../../kernel/rows.ts';
import { FORGOTTEN, type Holds, isOfChats } from '../../kernel/sessions/rules/forgetting.ts';
import { flag, number, object, place, rowShape, text, texts } from '../../lib/json/json.ts';

export type DraftState = 'open' | 'editing' | 'sent' | 'dropped' | 'expired';

export type Draft = {
  /** `turnId/place of the call`: the same on every retry of the turn. */
  readonly id: string;
  readonly letter: Letter;
  /** Its destination. */
  readonly chat: ChatRef;
  /** The name of the recipient. */
  readonly name: string;
  /** Recipients who got no letter before. */
  readonly newTo: readonly string[];
  readonly turn: Omit<AskingTurn, 'isOwnerHere'>;
  /** Rights of the turn that asked, and of the turn that is told the outcome. */
  readonly rights: Rights;
  readonly isTainted: boolean;
  /** Where an owner sees it. */
  readonly shownIn: ChatRef;
  /** Increases with every change; each version needs an approval of its own. */
  readonly version: number;
  /** The message with the newest text. */
  readonly editedBy?: MessageId;
  /** Epoch milliseconds. */
  readonly at: number;
  /** Time of the owner's last choice. */
  readonly changedAt?: number;
  readonly state: DraftState;
};

const SCOPE = 'drafts';
/** A turn is retried within minutes; the limits count days. */
const KEPT_MS = 3 * 86_400_000;

/** Binds an approval to the text and recipient. */
export function hashOfDraft({ id, chat, letter, version }: Draft): string {
  const parts = [id, sessionKeyOf(chat), letter, version];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

export const isWaiting = ({ state }: Draft) => state === 'open' || state === 'editing';

const KEPT = rowShape<Draft>({
  ...{ id: text, letter: object, chat: place, name: text, newTo: texts, turn: object },
  ...{ rights: object, isTainted: flag, shownIn: place, version: number, at: number },
  state: text,
});

export type DraftRows = {
  /** Oldest first. */
  readonly drafts: Rows<Draft>;
  /** Chats that letters were sent to, by session key. */
  readonly written: Rows<object>;
};

export const openDraftRows = (rows: OpenRows): DraftRows => ({
  drafts: rows({
    ...jsonRows(KEPT),
    ...{ scope: SCOPE, prefix: 'draft:', isCached: true },
    order: (one, other) => one.at - other.at,
  }),
  written: rows({ ...MARKS, scope: SCOPE, prefix: 'written:' }),
});

/** The letter whose new text this message is, also when the message is redelivered. */
export async function editedBy(
  { drafts }: DraftRows,
  isHere: (draft: Draft) => boolean,
  message: MessageId,
): Promise<Draft | undefined> {
  const here = (await drafts.list()).filter(isHere);
  const taken = here.find((draft) => draft.editedBy === message);
  const editing = here.filter(({ state }) => state === 'editing');
  return taken ?? chosenLast(editing, ({ changedAt }) => changedAt);
}

/**
 * Erases the text of decided letters of these conversations that contain the words; returns how
 * many.
 */
export async function eraseLetters(
  { drafts }: DraftRows,
  chats: readonly string[],
  holds: Holds,
): Promise<number> {
  const isMeant = (draft: Draft) =>
    !isWaiting(draft) && isOfChats(draft.turn, chats) && holds(JSON.stringify(draft.letter));
  const found = (await drafts.list()).filter(isMeant);
  for (const { id } of found) {
    await drafts.change(id, (draft) =>
      draft !== undefined && isMeant(draft) ? withoutText(draft) : undefined,
    );
  }
  return found.length;
}

function withoutText(draft: Draft): Draft {
  const { letter } = draft;
  const subject = letter.kind === 'mail' ? { subject: FORGOTTEN } : {};
  return { ...draft, letter: { ...letter, ...subject, markdown: FORGOTTEN } };
}

/** Removes letters that were decided long ago. */
export const removeOldDrafts = ({ drafts }: DraftRows, now: number) =>
  drafts.erase((draft) => draft.at < now - KEPT_MS && !isWaiting(draft));

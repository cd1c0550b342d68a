// The questions that wait for an answer: stored on disk and cached in memory, so that no message
// costs a read of the store.

import { z } from 'zod';
import { flag, number, place, rowShape, text, texts } from '../../lib/json/json.ts';
import type { AdmittedRole } from '../access/admission.ts';
import type { Rights } from '../access/rights.ts';
import type { AskingTurn } from '../guards.ts';
import type { OutboundAttachment } from '../message/attachment.ts';
import { type MessageId, messageId, type SessionKey, type UserId } from '../message/ids.ts';
import {
  type ChatRef,
  type InboundMessage,
  idsOf,
  type PersonSender,
  type SystemSender,
  sessionKeyOf,
} from '../message/message.ts';
import { jsonRows, type OpenRows, type Rows } from '../rows.ts';
import { type Holds, isOfChats } from '../sessions/rules/forgetting.ts';
import type { Matter } from './rules/question-text.ts';

export type OpenQuestion = {
  readonly id: string;
  /** Number of earlier times it was asked. */
  readonly round: number;
  readonly chat: ChatRef;
  /** What stays in the chat after the decision. */
  readonly markdown: string;
  /** Below it, until then. */
  readonly tail?: string;
  readonly attachments?: readonly OutboundAttachment[];
  readonly choices: readonly {
    readonly label: string;
    readonly action: string;
    readonly token: string;
    readonly hasNoThumb?: true;
  }[];
  readonly approvers: 'owners' | readonly UserId[];
  readonly subject: string;
  /** Epoch milliseconds. */
  readonly askedAt: number;
  readonly expiresAt: number;
  /** Nothing was written in its chat since. */
  readonly isNumbered: boolean;
  /** It was answered, and the effect may not have run yet. */
  readonly chosen?: {
    readonly action: string;
    readonly by: PersonSender;
    /** The press, whose reply reports the outcome. */
    readonly message?: MessageId;
    /** It was answered outside of any chat. */
    readonly isOutside?: true;
  };
  /** The text shown for the choice, if an outcome follows: see `outcome`. */
  readonly underWay?: string;
};

const OPEN = rowShape<OpenQuestion>({
  ...{ id: text, round: number, chat: place, markdown: text, subject: text },
  choices: z.array(z.looseObject({ label: text, action: text, token: text })),
  approvers: z.union([z.literal('owners'), texts]),
  ...{ askedAt: number, expiresAt: number, isNumbered: flag },
});

/** The id of the text that asks it. */
export const textOf = ({ id, round }: Pick<OpenQuestion, 'id' | 'round'>): MessageId =>
  messageId(`question/${id}/${round}`);

const SCOPE = 'questions';
/** A message that was not confirmed to its platform comes again sooner. */
const USED_LIFETIME_MS = 7 * 86_400_000;

/** Whether the sender may answer in this chat. */
export function mayDecide(
  open: OpenQuestion,
  sender: PersonSender,
  chat: ChatRef,
  role: AdmittedRole,
): boolean {
  const isHere =
    open.chat.channel === chat.channel &&
    open.chat.account === chat.account &&
    open.chat.chat === chat.chat;
  if (!isHere || sender.verified === 'unverified') return false;
  const { approvers } = open;
  if (approvers === 'owners') return role === 'owner';
  return idsOf(sender).some((id) => approvers.includes(id));
}

export type QuestionRows = {
  /** Open questions, oldest first. */
  readonly open: Rows<OpenQuestion>;
  /** Presses that ran before they were stored themselves, by the id of their message. */
  readonly used: Rows<{ readonly token: string }>;
};

export const openQuestionRows = (rows: OpenRows): QuestionRows => ({
  open: rows({
    ...jsonRows(OPEN),
    ...{ scope: SCOPE, prefix: 'open:', isCached: true },
    order: (one, other) => one.askedAt - other.askedAt,
  }),
  used: rows({
    read: (token) => ({ token }),
    write: ({ token }) => token,
    ...{ scope: SCOPE, prefix: 'used:', isCached: true },
  }),
});

export async function byToken(
  { open }: QuestionRows,
  token: string,
): Promise<OpenQuestion | undefined> {
  const all = await open.list();
  return all.find(({ choices }) => choices.some((choice) => choice.token === token));
}

/** The newest question of the chat, while a number answers it. */
export async function numberedIn(
  { open }: QuestionRows,
  chat: ChatRef,
): Promise<OpenQuestion | undefined> {
  const place = sessionKeyOf(chat);
  const newest = (await open.list()).findLast(
    (each) => sessionKeyOf(each.chat) === place && each.chosen === undefined,
  );
  return newest?.isNumbered === true ? newest : undefined;
}

/** Removes presses that cannot come again. */
export const expireUsed = ({ used }: QuestionRows, now: number): Promise<number> =>
  used.expire(now - USED_LIFETIME_MS);

/** Of several rows, the one that the owner chose last. */
export const chosenLast = <T>(
  rows: readonly T[],
  chosenAt: (row: T) => number | undefined,
): T | undefined =>
  rows.toSorted((one, other) => (chosenAt(one) ?? 0) - (chosenAt(other) ?? 0)).at(-1);

// CONTRACT of the questions that people answer by a press or a number: the question, and the effect
// of an answer.

export type Question = {
  /** A question with the same id is asked once. */
  readonly id: string;
  /** The only chat in which it can be answered. */
  readonly chat: ChatRef;
  /** A sentence, Markdown. */
  readonly markdown: string;
  /** Who requests it, and the exact text of the decision. */
  readonly matter?: Matter;
  readonly choices: readonly {
    readonly label: string;
    readonly action: string;
    /** A choice besides yes and no: no thumb reaction means it. */
    readonly hasNoThumb?: true;
  }[];
  readonly approvers: 'owners' | readonly UserId[];
  /** `kind:rest`; the handler of the kind gets the rest. */
  readonly subject: string;
  readonly expiresInMs: number;
};

/**
 * The text for the person, shown below the question from then on. `next`: the next question;
 * `isUnderWay`: the outcome follows later, see `outcome`.
 */
export type Answered =
  | string
  | { readonly words: string; readonly next?: Question; readonly isUnderWay?: true };

/** Who chose, and where; no place outside of any chat. */
export type Chooser = readonly [who: PersonSender, at?: ChatRef | undefined];

/** Every step may be repeated after a crash. */
export type QuestionHandler = {
  /** Executes the choice. */
  answer(rest: string, action: string, ...chooser: Chooser): Promise<Answered>;
  /** The question expired. Returns the text for the person if it is more than that. */
  expired?(rest: string): Promise<string | undefined> | Promise<void>;
  /** It was decided by other means, or nothing is left to decide: returns the text below it. */
  settled?(rest: string, question: string): Promise<string | undefined>;
  /** At the start, before any question: asks what an earlier process had left to ask. */
  takeUp?(): Promise<void>;
};

// Pending decisions: rows that wait for a person's answer and record their progress in `state`. A
// row is open until it is decided by a press, by text or by expiry; of several decisions, the first
// counts.

type Pending = {
  readonly id: string;
  readonly session: SessionKey;
  /** `open`: not decided yet. */
  readonly state: { readonly kind: string };
};

type KindOf<T extends Pending> = T['state']['kind'];

export const isOpen = ({ state }: Pending) => state.kind === 'open';

/** The open ones, in the order of the collection. */
export const openOf = async <T extends Pending>(rows: Rows<T>): Promise<readonly T[]> =>
  (await rows.list()).filter(isOpen);

/** Subject of a question about a row: valid while the row is what was shown. */
export const subjectOf = (kind: string, id: string, hash: string) => `${kind}:${hash}:${id}`;

/** The row of such a subject, if it still is what was shown. */
export async function rowOf<T extends object>(
  rest: string,
  rows: Rows<T>,
  hashOf: (row: T) => string,
): Promise<T | undefined> {
  const colon = rest.indexOf(':');
  const row = await rows.get(rest.slice(colon + 1));
  return row !== undefined && hashOf(row) === rest.slice(0, colon) ? row : undefined;
}

/**
 * The message that starts a turn with the outcome of a decision: for the person who asked, with
 * their rights at that time.
 */
export function outcomeMessage(
  { rights, isTainted, turn }: Decided,
  { id, source, text }: { id: string; source: SystemSender['source']; text: string },
  now: number,
): InboundMessage {
  const { chat, session, person, paidBy, replyTo } = turn;
  return {
    ...{
      id: messageId(id),
      chat,
      session,
      text,
      addressing: 'direct',
      sentAt: now,
      receivedAt: now,
    },
    sender: {
      ...{ kind: 'system', source, rights, person },
      ...(paidBy === undefined ? {} : { paidBy }),
      ...(isTainted ? { isTainted } : {}),
    },
    ...(replyTo === undefined ? {} : { replyTo }),
  };
}

type Decided = {
  readonly rights: Rights;
  readonly isTainted: boolean;
  readonly turn: Pick<AskingTurn, 'chat' | 'session' | 'person' | 'paidBy'> & {
    readonly replyTo?: AskingTurn['replyTo'];
  };
};

/** Whether the row was in one of the states of `from`, and is in `state` now. */
export async function moveOn<T extends Pending>(
  rows: Rows<T>,
  id: string,
  from: readonly KindOf<T>[],
  state: T['state'],
): Promise<boolean> {
  const moved = await rows.change(id, (row) =>
    row !== undefined && from.includes(row.state.kind) ? { ...row, state } : undefined,
  );
  return moved !== undefined;
}

/** Removes decided rows of these conversations that contain the words; returns how many. */
export const eraseDecided = <T extends Pending>(
  rows: Rows<T>,
  chats: readonly string[],
  holds: Holds,
  of: { isOver(row: T): boolean; textOf(row: T): unknown },
): Promise<number> =>
  rows.erase(
    (row) => of.isOver(row) && isOfChats(row, chats) && holds(JSON.stringify(of.textOf(row))),
  );

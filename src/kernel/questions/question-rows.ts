// The questions that wait for an answer: stored on disk and cached in memory, so that no message
// costs a read of the store.

import { z } from 'zod';
import { flag, number, place, type RowShape, rowShape, text, texts } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
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
  writtenNow,
} from '../message/message.ts';
import { jsonRows, type OpenRows, type Rows } from '../rows.ts';
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
  /** Owners may decide as well. */
  readonly orOwners?: true | undefined;
  readonly subject: string;
  /** The conversation that it belongs to; then it is kept after its end. */
  readonly session?: SessionKey | undefined;
  /** What its feature needs when it is decided. */
  readonly payload?: object | undefined;
  /** The next message of those who may decide, in its chat, is an answer in words. */
  readonly hears?: Hears | undefined;
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
    /** An answer in words. */
    readonly said?: Said;
  };
  /** The text shown for the choice, if an outcome follows: see `outcome`. */
  readonly underWay?: string;
  /** Decided by other means, perhaps in another process: the text to show below it. */
  readonly withdrawn?: string;
};

/** `any`: also with files, which are not part of the answer. */
type Hears = 'text' | 'any';

type Said = { readonly text: string; readonly hasFiles: boolean };

/** A question of a conversation after its end. Kept, because the turn that asked it may be repeated. */
export type EndedQuestion = Pick<OpenQuestion, 'id' | 'subject' | 'session' | 'payload'> & {
  /** The action that was chosen, or another word of its handler; `expired`; `withdrawn`. */
  readonly outcome: string;
  /** Epoch milliseconds. */
  readonly at: number;
  /** What the model is told of it with a later message of the conversation. */
  readonly note?: string | undefined;
  /** That message. */
  readonly toldIn?: MessageId | undefined;
};

const OPEN = rowShape<OpenQuestion>({
  ...{ id: text, round: number, chat: place, markdown: text, subject: text },
  choices: z.array(z.looseObject({ label: text, action: text, token: text })),
  approvers: z.union([z.literal('owners'), texts]),
  ...{ askedAt: number, expiresAt: number, isNumbered: flag },
});

/** Neither answered nor decided by other means. */
export const isUndecided = ({ chosen, withdrawn }: OpenQuestion) =>
  chosen === undefined && withdrawn === undefined;

const ENDED = rowShape<EndedQuestion>({ id: text, subject: text, outcome: text, at: number });

/** The id of the text that asks it. */
export const textOf = ({ id, round }: Pick<OpenQuestion, 'id' | 'round'>): MessageId =>
  messageId(`question/${id}/${round}`);

/** The payload of the question that the text asks. */
export async function payloadOfText<T extends object>(
  { open, ended }: QuestionRows,
  text: MessageId,
  shape: RowShape<T>,
): Promise<T | undefined> {
  const [, id = ''] = /^question\/(.*)\/\d+$/s.exec(text) ?? [];
  const question = (await open.get(id)) ?? (await ended.get(id));
  return question && payloadOf(question, shape);
}

const SCOPE = 'questions';
/** A message that was not confirmed to its platform comes again sooner, and a turn is retried sooner. */
const KEPT_MS = 7 * 86_400_000;

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
  const { approvers, orOwners } = open;
  if (approvers === 'owners' || (orOwners === true && role === 'owner')) return role === 'owner';
  return idsOf(sender).some((id) => approvers.includes(id));
}

export type QuestionRows = {
  /** Open questions, oldest first. */
  readonly open: Rows<OpenQuestion>;
  /** Oldest first. */
  readonly ended: Rows<EndedQuestion>;
  /** Answers that ran before they were stored themselves, by the id of their message. */
  readonly used: Rows<{ readonly token: string }>;
};

/** A token from outside finds nothing of another kind. */
const keyOf = (kind: 'session' | 'chat' | 'text' | 'token', value: string) => `${kind} ${value}`;
const keysOfSession = ({ session }: Pick<OpenQuestion, 'session'>) =>
  session === undefined ? [] : [keyOf('session', session)];
const keyOfChat = ({ thread: _thread, ...chat }: ChatRef) => keyOf('chat', sessionKeyOf(chat));

/** Those of a conversation, or all. */
export const questionsOf = async <T extends object>(
  rows: Rows<T>,
  session: SessionKey | undefined,
): Promise<readonly T[]> =>
  session === undefined ? rows.list() : (await rows.live()).by(keyOf('session', session));

export const openQuestionRows = (rows: OpenRows): QuestionRows => ({
  open: rows({
    ...jsonRows(OPEN),
    ...{ scope: SCOPE, prefix: 'open:', isCached: true },
    order: (one, other) => one.askedAt - other.askedAt,
    keys: (open) => [
      ...keysOfSession(open),
      keyOfChat(open.chat),
      keyOf('text', textOf(open)),
      ...open.choices.map(({ token }) => keyOf('token', token)),
    ],
  }),
  ended: rows({
    ...jsonRows(ENDED),
    ...{ scope: SCOPE, prefix: 'ended:', isCached: true },
    order: (one, other) => one.at - other.at,
    keys: (ended) => keysOfSession(ended),
  }),
  used: rows({
    read: (token) => ({ token }),
    write: ({ token }) => token,
    ...{ scope: SCOPE, prefix: 'used:', isCached: true },
  }),
});

/** The open question with this token, or that the text of this id asks. */
export const openBy = async ({ open }: QuestionRows, kind: 'text' | 'token', value: string) =>
  (await open.live()).by(keyOf(kind, value))[0];

/** The newest question of the chat, while a number answers it. */
export async function numberedIn(
  { open }: QuestionRows,
  chat: ChatRef,
): Promise<OpenQuestion | undefined> {
  const place = sessionKeyOf(chat);
  const newest = (await open.live())
    .by(keyOfChat(chat))
    .findLast((each) => sessionKeyOf(each.chat) === place && isUndecided(each));
  return newest?.isNumbered === true ? newest : undefined;
}

/** The token of an answer in words. */
export const IN_WORDS = '';

/** The question of the chat that takes the sender's next message as its answer: the newest. */
export async function hearingIn(
  { open }: QuestionRows,
  { chat, addressing, group, text, attachments = [] }: InboundMessage,
  sender: PersonSender,
  role: AdmittedRole,
): Promise<OpenQuestion | undefined> {
  if (addressing !== 'direct' || group !== undefined || text.trim() === '') return undefined;
  return (await open.live())
    .by(keyOfChat(chat))
    .findLast(
      (each) =>
        each.hears !== undefined &&
        isUndecided(each) &&
        (each.hears === 'any' || attachments.length === 0) &&
        mayDecide(each, sender, chat, role),
    );
}

/** Removes answers that cannot come again, and questions that ended long ago. */
export async function removeOld({ used, ended }: QuestionRows, now: number): Promise<void> {
  await used.expire(now - KEPT_MS);
  await ended.expire(now - KEPT_MS);
}

/** Marks a question as decided by other means; the gateway closes it, in whichever process it is. */
export async function settle({ open }: QuestionRows, id: string, words: string): Promise<boolean> {
  const settled = await open.change(id, (each) =>
    each && isUndecided(each) ? { ...each, withdrawn: words } : undefined,
  );
  return settled !== undefined;
}

// CONTRACT of the questions that people answer by a press or a number: the question, and the effect
// of an answer.

const HOUR_MS = 3_600_000;

/** How long a person may take. */
export const LIFETIME_MS = {
  /** The person waits for it. */
  call: HOUR_MS,
  /** It can wait for the evening. */
  job: 12 * HOUR_MS,
  letter: 12 * HOUR_MS,
  /** Of the agent. */
  ask: 24 * HOUR_MS,
  mail: 7 * 24 * HOUR_MS,
  mailAnswer: 24 * HOUR_MS,
  /** The text of an answer to a mail is awaited. */
  mailText: HOUR_MS / 2,
  unknownSender: 7 * 24 * HOUR_MS,
  reflection: 24 * HOUR_MS,
  forget: HOUR_MS,
  undo: HOUR_MS,
  again: 24 * HOUR_MS,
  fallback: HOUR_MS,
} as const;

export type Question = {
  /** A question with the same id is asked once. */
  readonly id: string;
  /** The only chat in which it can be answered. */
  readonly chat: ChatRef;
  /** A sentence, Markdown. */
  readonly markdown: string;
  /** Who requests it, and the exact text of the decision. */
  readonly matter?: Matter;
  /** Empty: only words answer it. With `hears`, an earlier text of this question stays as it is. */
  readonly choices: readonly {
    readonly label: string;
    readonly action: string;
    /** A choice besides yes and no: no thumb reaction means it. */
    readonly hasNoThumb?: true;
  }[];
  readonly approvers: 'owners' | readonly UserId[];
  /** `kind:rest`; the handler of the kind gets the rest. */
  readonly subject: string;
  /** See LIFETIME_MS. */
  readonly expiresInMs: number;
} & Pick<OpenQuestion, 'orOwners' | 'session' | 'payload' | 'hears'>;

/**
 * The text for the person, shown below the question from then on. `next`: the next question; with
 * the same id, it takes the place of this one. `isUnderWay`: the outcome follows later, see
 * `outcome`.
 */
export type Answered =
  | string
  | ({
      readonly words: string;
      readonly next?: Question;
      readonly isUnderWay?: true;
    } & Partial<Ending>);

export const EXPIRED = 'expired';
export const WITHDRAWN = 'withdrawn';

/** How a question ends. */
export type Ending = Pick<EndedQuestion, 'outcome' | 'note' | 'toldIn'>;

/** `rest` of its subject. */
export type Asked = Pick<OpenQuestion, 'id' | 'chat' | 'session' | 'payload'> & {
  readonly rest: string;
};

export type Choice = {
  /** Of a choice; `text`: in words; `more`: in words that came together with those. */
  readonly action: string;
  readonly by: PersonSender;
  /** Undefined: outside of any chat. */
  readonly at?: ChatRef | undefined;
  readonly said?: Said | undefined;
};

/** Every step may be repeated after a crash. */
export type QuestionHandler = {
  /** Executes the choice. */
  answer(asked: Asked, choice: Choice): Promise<Answered>;
  /** The question expired. Returns the text for the person if it is more than that; '': none. */
  expired?(asked: Asked): Promise<Answered | undefined> | Promise<void>;
  /** Whether what asked it still goes on; otherwise the text below it, which closes it. */
  settled?(asked: Asked): Promise<string | undefined>;
};

const NOT_KNOWN = t`This is not known any more; nothing is done.`;

/** A handler of questions with a payload. */
export function payloadHandler<T extends object>(
  shape: RowShape<T>,
  { answer, expired, settled }: PayloadHandler<T>,
): QuestionHandler {
  return {
    async answer(asked, choice) {
      const payload = payloadOf(asked, shape);
      return payload === undefined ? NOT_KNOWN : answer(payload, asked, choice);
    },
    async expired(asked) {
      const payload = payloadOf(asked, shape);
      return payload && expired?.(payload, asked);
    },
    async settled(asked) {
      const payload = payloadOf(asked, shape);
      return payload && settled?.(payload);
    },
  };
}

type PayloadHandler<T> = {
  answer(payload: T, asked: Asked, choice: Choice): Promise<Answered>;
  expired?(payload: T, asked: Asked): Promise<Answered | undefined>;
  settled?(payload: T): Promise<string | undefined>;
};

/** Undefined if it is damaged. */
export const payloadOf = <T extends object>(
  { payload }: { readonly payload?: object | undefined },
  shape: RowShape<T>,
): T | undefined => (shape.safeParse(payload).success ? (payload as T) : undefined);

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
  const sender: SystemSender = {
    ...{ kind: 'system', source, rights, person },
    ...(paidBy === undefined ? {} : { paidBy }),
    ...(isTainted ? { isTainted } : {}),
  };
  return writtenNow({ id: messageId(id), chat, session, text, sender, replyTo }, now);
}

type Decided = {
  readonly rights: Rights;
  readonly isTainted: boolean;
  readonly turn: Pick<AskingTurn, 'chat' | 'session' | 'person' | 'paidBy'> & {
    readonly replyTo?: AskingTurn['replyTo'];
  };
};

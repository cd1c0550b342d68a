// The questions that wait for an answer: on disk, and in memory as they are on disk, so that no
// message costs a look into the store.

import { z } from 'zod';
import { readOnce } from '../../lib/async.ts';
import { flag, jsonRow, number, place, rowShape, text, texts } from '../../lib/json/json.ts';
import type { AdmittedRole } from '../access/admission.ts';
import type { KeyValueStore } from '../bus/store/store.ts';
import { type MessageId, messageId, type UserId } from '../message/ids.ts';
import { type ChatRef, idsOf, type PersonSender, sessionKeyOf } from '../message/message.ts';

export type OpenQuestion = {
  readonly id: string;
  /** How often it was asked before. */
  readonly round: number;
  readonly chat: ChatRef;
  readonly markdown: string;
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
  /** It was answered, and what that does may not have been done. */
  readonly chosen?: {
    readonly action: string;
    readonly by: PersonSender;
    /** The press, whose reply tells what came of it. */
    readonly message?: MessageId;
    /** It was chosen outside of any chat. */
    readonly isOutside?: true;
  };
};

const OPEN = rowShape<OpenQuestion>({
  ...{ id: text, round: number, chat: place, markdown: text, subject: text },
  choices: z.array(z.looseObject({ label: text, action: text, token: text })),
  approvers: z.union([z.literal('owners'), texts]),
  ...{ askedAt: number, expiresAt: number, isNumbered: flag },
});

/** The text that asks it. */
export const textOf = ({ id, round }: Pick<OpenQuestion, 'id' | 'round'>): MessageId =>
  messageId(`question/${id}/${round}`);

const PREFIX = 'open:';
/** Of a press that was carried out before it was stored itself: its token, by the message's id. */
const USED = 'used:';
/** A message that was not confirmed to its platform comes again sooner. */
const USED_LIFETIME_MS = 7 * 86_400_000;

/** Whether somebody may answer in this chat. */
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

export class QuestionBook {
  readonly #state: KeyValueStore;
  readonly #questions = readOnce(() => this.#load());
  readonly #used = readOnce(() => this.#loadUsed());

  constructor(state: KeyValueStore) {
    this.#state = state;
  }

  async get(id: string): Promise<OpenQuestion | undefined> {
    return (await this.#questions()).get(id);
  }

  /** Oldest first. */
  async all(): Promise<readonly OpenQuestion[]> {
    const questions = [...(await this.#questions()).values()];
    return questions.sort((one, other) => one.askedAt - other.askedAt);
  }

  async byToken(token: string): Promise<OpenQuestion | undefined> {
    const questions = (await this.#questions()).values();
    return questions.find(({ choices }) => choices.some((choice) => choice.token === token));
  }

  /** The newest of the chat, while a number answers it. */
  async numberedIn(chat: ChatRef): Promise<OpenQuestion | undefined> {
    const questions = await this.#questions();
    if (questions.size === 0) return undefined;
    const place = sessionKeyOf(chat);
    const here = (await this.all()).filter((open) => sessionKeyOf(open.chat) === place);
    const newest = here.at(-1);
    return newest?.isNumbered === true ? newest : undefined;
  }

  async put(question: OpenQuestion): Promise<void> {
    const questions = await this.#questions();
    await this.#state.set(`${PREFIX}${question.id}`, JSON.stringify(question));
    questions.set(question.id, question);
  }

  async close(id: string): Promise<void> {
    const questions = await this.#questions();
    await this.#state.delete(`${PREFIX}${id}`);
    questions.delete(id);
  }

  /** The message may come once more, and has had its effect. */
  async use(press: MessageId, token: string): Promise<void> {
    const used = await this.#used();
    await this.#state.set(`${USED}${press}`, token);
    used.set(press, token);
  }

  /** The token that this message stood for; undefined unless it had its effect before it was stored. */
  async usedBy(press: MessageId): Promise<string | undefined> {
    return (await this.#used()).get(press);
  }

  /** Forgets what cannot come again. */
  async expire(now: number): Promise<void> {
    await this.#state.expire(USED, now - USED_LIFETIME_MS);
  }

  async #loadUsed(): Promise<Map<string, string>> {
    const rows = await this.#state.list(USED);
    return new Map(rows.map(({ key, value }) => [key.slice(USED.length), value]));
  }

  async #load(): Promise<Map<string, OpenQuestion>> {
    const rows = await this.#state.list(PREFIX);
    const questions = rows.flatMap(({ value }) => jsonRow(value, OPEN) ?? []);
    return new Map(questions.map((question) => [question.id, question]));
  }
}

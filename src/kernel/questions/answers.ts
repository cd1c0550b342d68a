// How people answer questions: by a press, by a number or a thumb where there are no buttons, in words,
// or outside of any chat. Each choice has a random token, valid once, in one chat, for those who may
// decide. An answer is stored before its effect.

import type { Logger } from '../../lib/logger.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { AdmittedRole } from '../access/admission.ts';
import type { MessageBus } from '../bus/bus.ts';
import type { MessageId, NativeId } from '../message/ids.ts';
import {
  type ChatRef,
  type InboundMessage,
  type PersonSender,
  sessionKeyOf,
} from '../message/message.ts';
import {
  hearingIn,
  IN_WORDS,
  isUndecided,
  mayDecide,
  numberedIn,
  type OpenQuestion,
  openBy,
  type QuestionRows,
} from './question-rows.ts';

type AnswersDeps = {
  readonly rows: QuestionRows;
  readonly bus: Pick<MessageBus, 'sentAs'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Logger;
  /** On channels without buttons, the numbers of choices are the answers. */
  hasButtons(chat: ChatRef): boolean;
  /** Of two concurrent answers only one may count. */
  oneByOne<T>(task: () => Promise<T>): Promise<T>;
  /** Executes a stored answer. */
  carriedOut(open: OpenQuestion): Promise<Pressed>;
};

/** `isSaid`: the text is in the chat already, below the question or as a message. */
export type Pressed = { readonly words: string; readonly isSaid: boolean };

const NUMBER = /^\s*([1-9]\d?)[.)]?\s*$/;
export const NO_LONGER = t`This can no longer be answered: it was already decided or has expired.`;
const NOT_YOURS = t`This is not yours to decide.`;

export function createAnswers(deps: AnswersDeps) {
  const { rows, bus, clock, log, hasButtons, oneByOne, carriedOut } = deps;

  /** Records the choice; returns why it does not count, or undefined. */
  async function choose(token: string, chosen: Omit<Chosen, 'action'>, isTheirs: IsTheirs) {
    const open = await openBy(rows, 'token', token);
    const choice = open?.choices.find((each) => each.token === token);
    if (open === undefined || choice === undefined || !isUndecided(open)) return NO_LONGER;
    if (!isTheirs(open)) {
      log.warn('question answered by another person', { question: open.id });
      return NOT_YOURS;
    }
    if (open.expiresAt <= clock.now()) return NO_LONGER;
    const { action } = choice;
    await rows.open.change(open.id, (each) => each && { ...each, chosen: { ...chosen, action } });
    return undefined;
  }

  async function decide(
    token: string,
    chosen: Omit<Chosen, 'action'>,
    isTheirs: IsTheirs,
  ): Promise<Pressed> {
    // An earlier process executed and answered it.
    if (chosen.message !== undefined && (await rows.used.get(chosen.message))?.token === token)
      return { words: '', isSaid: true };
    const known = await openBy(rows, 'token', token);
    const isNoted = chosen.message !== undefined && known?.chosen?.message === chosen.message;
    const refusal = isNoted ? undefined : await choose(token, chosen, isTheirs);
    if (refusal !== undefined) return { words: refusal, isSaid: false };
    const open = await openBy(rows, 'token', token);
    return open === undefined ? { words: NO_LONGER, isSaid: false } : carriedOut(open);
  }

  /** Takes the message as the answer in words, unless it is decided already. */
  async function hear(id: string, message: InboundMessage, by: PersonSender) {
    const { text, attachments = [] } = message;
    const said = { text: text.trim(), hasFiles: attachments.length > 0 };
    const heard = await rows.open.change(
      id,
      (open) => {
        if (open === undefined || !isUndecided(open)) return undefined;
        // Messages that are handed over together are one answer.
        const action = open.hears === undefined ? 'more' : 'text';
        return { ...open, chosen: { action, by, message: message.id, said } };
      },
      () => [rows.used.write(message.id, { token: IN_WORDS })],
    );
    if (heard !== undefined) await carriedOut(heard);
  }

  /** The open question that the platform's message asks. */
  async function askedIn(chat: ChatRef, part: NativeId): Promise<OpenQuestion | undefined> {
    const sent = await bus.sentAs(sessionKeyOf(chat), part);
    return sent && openBy(rows, 'text', sent.id);
  }

  return {
    /** Records the choice of a press, so that it is executed whatever happens to this process. */
    async choose({ id, press, sender, chat }: InboundMessage, role: AdmittedRole): Promise<void> {
      if (press === undefined || sender.kind !== 'person') return;
      const isTheirs = (open: OpenQuestion) => mayDecide(open, sender, chat, role);
      await oneByOne(() => choose(press, { by: sender, message: id }, isTheirs));
    },
    /**
     * Executes it: returns the text for the person who pressed; undefined if the message is no
     * press.
     */
    async press(
      { id, press, sender, chat }: InboundMessage,
      role: AdmittedRole,
    ): Promise<Pressed | undefined> {
      if (press === undefined) return undefined;
      if (sender.kind !== 'person') return { words: NOT_YOURS, isSaid: false };
      const isTheirs = (open: OpenQuestion) => mayDecide(open, sender, chat, role);
      return oneByOne(() => decide(press, { by: sender, message: id }, isTheirs));
    },
    /**
     * The token that a number means, quoting a question or, in a private chat, as the next text
     * after one, on a channel without buttons; undefined if the message is none. Other text goes to
     * the agent, and from then on numbers that quote nothing too.
     */
    async numbered({ id, chat, text, addressing, group, quoted }: InboundMessage) {
      const isPrivate = addressing === 'direct' && group === undefined;
      if (hasButtons(chat) || !(isPrivate || quoted?.sentAs)) return undefined;
      const used = await rows.used.get(id);
      if (used !== undefined) return used.token || undefined;
      const number = Number(NUMBER.exec(text)?.[1] ?? 0);
      const newest = isPrivate ? await numberedIn(rows, chat) : undefined;
      const open = number > 0 && quoted?.sentAs ? await askedIn(chat, quoted.sentAs) : newest;
      const choice = open?.choices[number - 1];
      if (choice === undefined && newest !== undefined)
        await rows.open.change(newest.id, (each) => each && { ...each, isNumbered: false });
      return choice?.token;
    },
    /**
     * The tokens that a thumb reaction to this text can mean, for a question without buttons; else
     * none.
     */
    async tokensOf(text: MessageId): Promise<readonly string[]> {
      const open = await openBy(rows, 'text', text);
      if (open === undefined || !isUndecided(open) || hasButtons(open.chat)) return [];
      const meant = open.choices.filter(({ hasNoThumb }) => hasNoThumb !== true);
      return meant.map(({ token }) => token);
    },
    /**
     * How to take this message as an answer in words; undefined if none is awaited from its sender
     * in this chat. A message that is here again was taken.
     */
    async heard(
      message: InboundMessage,
      role: AdmittedRole,
    ): Promise<(() => Promise<void>) | undefined> {
      const { sender } = message;
      if (sender.kind !== 'person') return undefined;
      if ((await rows.used.get(message.id))?.token === IN_WORDS) return async () => undefined;
      const open = await hearingIn(rows, message, sender, role);
      return open && (() => oneByOne(() => hear(open.id, message, sender)));
    },
    /**
     * An owner's choice made outside any chat, by a token that only readers of the question know.
     */
    answer: (token: string, owner: PersonSender): Promise<string> =>
      oneByOne(async () => {
        const isTheirs = ({ approvers }: OpenQuestion) => approvers === 'owners';
        return (await decide(token, { by: owner, isOutside: true }, isTheirs)).words;
      }),
  };
}

type Chosen = NonNullable<OpenQuestion['chosen']>;
type IsTheirs = (open: OpenQuestion) => boolean;

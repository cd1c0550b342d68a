// A turn's answers as what is to be sent: where its conversation is answered now, and only there.

import type { MessageBus, Turn, TurnResult } from '../bus/bus.ts';
import { excerptOf } from '../core/excerpt.ts';
import { type MessageId, messageId } from '../core/ids.ts';
import { questionOf } from '../core/late.ts';
import type { InboundMessage, OutboundDraft } from '../core/message.ts';
import { isSameChat } from '../core/person.ts';
import type { Routes } from './routes.ts';
import type { TurnPersonOf } from './turn-person.ts';

/** What an answer refers to: our own messages stand in no chat. */
export function answered({ sender, replyTo, id }: InboundMessage): MessageId | undefined {
  return sender.kind === 'system' ? replyTo : id;
}

export type AnswerDeps = {
  readonly routes: Pick<Routes, 'answersTo'>;
  readonly personOf: TurnPersonOf;
};

/** The first answer completes the turn's live draft, where that stands in the same chat. */
export async function resultOf(
  turn: Turn,
  throughSeq: number,
  answers: readonly string[],
  newest: InboundMessage,
  { routes, personOf }: AnswerDeps,
): Promise<TurnResult> {
  const { timeZone } = await personOf(newest);
  const zone = timeZone === undefined ? {} : { timeZone };
  const chat = await routes.answersTo(turn.session, newest);
  const replyTo = isSameChat(chat, newest.chat) ? answered(newest) : undefined;
  const isShownThere = isSameChat(chat, turn.chat);
  const isAsked = newest.sender.kind === 'person';
  const asked = isAsked ? { question: { ...questionOf(newest), ...zone } } : {};
  const outbound = answers.map((markdown, index) => ({
    chat,
    markdown,
    ...(replyTo === undefined ? {} : { replyTo }),
    ...(index === 0 ? asked : {}),
    ...(index === 0 && isShownThere ? { finalizes: turn.id } : {}),
  }));
  return { throughSeq, outbound };
}

/** Said of a message that is given up; others of the chat may be waiting behind it. */
export function poisonAnswer({ chat, messages }: Turn): readonly OutboundDraft[] {
  const [{ message }] = messages;
  const words = excerptOf(message.text);
  const which = words === '' ? 'your last message' : `your message “${words}”`;
  const markdown =
    `I could not deal with ${which}: it failed several times. ` +
    'It is set aside, and I go on with what comes next.';
  return [{ chat, markdown, replyTo: message.id }];
}

/** A text on the way to the answer. */
export type Said = {
  readonly turn: Pick<Turn, 'id' | 'session'>;
  readonly newest: InboundMessage;
  /** Its place in the turn; the same one is sent once. */
  readonly ordinal: number;
  readonly said: Pick<OutboundDraft, 'markdown' | 'attachments'>;
};

export async function sendSaid(
  { turn, newest, ordinal, said }: Said,
  {
    bus,
    routes,
  }: { readonly bus: Pick<MessageBus, 'send'>; readonly routes: Pick<Routes, 'answersTo'> },
): Promise<void> {
  const chat = await routes.answersTo(turn.session, newest);
  const replyTo = isSameChat(chat, newest.chat) ? answered(newest) : undefined;
  const id = messageId(`${turn.id}/say/${ordinal}`);
  await bus.send({ id, chat, ...said, ...(replyTo === undefined ? {} : { replyTo }) });
}

// Which conversation a chat takes part in, and where a conversation is answered. A chat has its own
// unless its person moved another one there or shares one over all doors. On disk, asked from memory.

import {
  type Move,
  type PeopleBook,
  type PeopleRows,
  ROWS,
} from '../../features/people/people-book.ts';
import type { Persons } from '../../features/people/persons.ts';
import { parseCommand } from '../access/command.ts';
import { doorOf, isSameChat, type PersonRecord } from '../access/person.ts';
import type { SessionKey } from '../message/ids.ts';
import { type ChatRef, chatRefOf, type InboundMessage, sessionKeyOf } from '../message/message.ts';

export type RoutesDeps = {
  readonly book: PeopleBook;
  readonly persons: Pick<Persons, 'author' | 'inChat'>;
};

export interface Routes {
  /** The message with the conversation it belongs to. `/new` in a moved one gives the chat its own back. */
  route(message: InboundMessage): Promise<InboundMessage>;
  sessionOf(chat: ChatRef): Promise<SessionKey>;
  /** Where what is said in a conversation goes, whose newest message this is. */
  answersTo(session: SessionKey, newest: InboundMessage): Promise<ChatRef>;
  /** What was asked up to then is answered in the other chat, which takes part from now on. */
  move(session: SessionKey, move: Move): Promise<void>;
}

export function createRoutes({ book, persons }: RoutesDeps): Routes {
  function targetOf(rows: PeopleRows, own: SessionKey, person: PersonRecord): SessionKey {
    if (person.conversations === 'shared' && person.session !== undefined) return person.session;
    const target = rows.routes.get(own);
    const channel = target === undefined ? undefined : chatRefOf(target)?.channel;
    // A door that was taken off takes its conversation along.
    const isTheirs = channel !== undefined && doorOf(person, channel) !== undefined;
    return target !== undefined && isTheirs ? target : own;
  }

  /** Whoever writes elsewhere again is answered there from then on. */
  async function settle(rows: PeopleRows, session: SessionKey, message: InboundMessage) {
    const move = rows.moves.get(session);
    if (move === undefined || message.receivedAt <= move.at) return;
    if (isSameChat(move.to, message.chat)) return;
    await book.write([{ key: ROWS.move(session), value: undefined }]);
  }

  return {
    async route(message) {
      const { sender, chat, addressing, text } = message;
      if (sender.kind !== 'person') return message;
      if (addressing !== 'direct' || sender.verified === 'unverified') return message;
      const rows = await book.rows();
      const own = sessionKeyOf(chat);
      const person = await persons.author(message);
      const session = person === undefined ? own : targetOf(rows, own, person);
      if (parseCommand(text) === undefined) await settle(rows, session, message);
      if (session === own) return message;
      if (rows.routes.has(own) && parseCommand(text)?.name === 'new') {
        await book.write([{ key: ROWS.route(own), value: undefined }]);
        return message;
      }
      return { ...message, session };
    },
    async sessionOf(chat) {
      const rows = await book.rows();
      const own = sessionKeyOf(chat);
      const person = await persons.inChat(chat);
      return person === undefined ? own : targetOf(rows, own, person);
    },
    async answersTo(session, newest) {
      const move = (await book.rows()).moves.get(session);
      if (move === undefined) return newest.chat;
      const isLater = newest.sender.kind === 'person' && newest.receivedAt > move.at;
      return isLater ? newest.chat : move.to;
    },
    async move(session, move) {
      const own = sessionKeyOf(move.to);
      await book.write([
        { key: ROWS.route(own), value: own === session ? undefined : session },
        { key: ROWS.move(session), value: JSON.stringify(move) },
      ]);
    },
  };
}

/** Where a turn is shown and answered, as long as nobody moves it. */
export const isAnsweredIn = async (
  routes: Pick<Routes, 'answersTo'>,
  session: SessionKey,
  newest: InboundMessage,
  chat: ChatRef,
) => isSameChat(await routes.answersTo(session, newest), chat);

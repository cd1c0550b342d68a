// Which conversation a chat takes part in, and where a conversation is answered. A chat has its own
// unless its person moved another one there or shares one over all doors. On disk, asked from memory.

import type { Move, PeopleRows } from '../../features/people/people-rows.ts';
import type { Persons } from '../../features/people/persons.ts';
import { parseCommand } from '../access/command.ts';
import { doorOf, isSameChat, type PersonRecord } from '../access/person.ts';
import type { SessionKey } from '../message/ids.ts';
import { type ChatRef, chatRefOf, type InboundMessage, sessionKeyOf } from '../message/message.ts';

export type RoutesDeps = {
  readonly book: Pick<PeopleRows, 'routes' | 'moves' | 'write'>;
  readonly persons: Pick<Persons, 'author' | 'inChat'>;
};

export type Routes = ReturnType<typeof createRoutes>;

export function createRoutes({ book, persons }: RoutesDeps) {
  const { routes, moves } = book;

  async function targetOf(own: SessionKey, person: PersonRecord): Promise<SessionKey> {
    if (person.conversations === 'shared' && person.session !== undefined) return person.session;
    const target = (await routes.get(own))?.session;
    const channel = target === undefined ? undefined : chatRefOf(target)?.channel;
    // A channel that was taken off takes its conversation along.
    const isTheirs = channel !== undefined && doorOf(person, channel) !== undefined;
    return target !== undefined && isTheirs ? target : own;
  }

  /** Whoever writes elsewhere again is answered there from then on. */
  async function settle(session: SessionKey, message: InboundMessage) {
    const move = await moves.get(session);
    if (move === undefined || message.receivedAt <= move.at) return;
    if (isSameChat(move.to, message.chat)) return;
    await book.write([moves.write(session, undefined)]);
  }

  return {
    /** The message with the conversation it belongs to. `/new` in a moved one gives the chat its own back. */
    async route(message: InboundMessage): Promise<InboundMessage> {
      const { sender, chat, addressing, text } = message;
      if (sender.kind !== 'person') return message;
      if (addressing !== 'direct' || sender.verified === 'unverified') return message;
      const own = sessionKeyOf(chat);
      const person = await persons.author(message);
      const session = person === undefined ? own : await targetOf(own, person);
      if (parseCommand(text) === undefined) await settle(session, message);
      if (session === own) return message;
      if (parseCommand(text)?.name === 'new' && (await routes.get(own)) !== undefined) {
        await book.write([routes.write(own, undefined)]);
        return message;
      }
      return { ...message, session };
    },
    async sessionOf(chat: ChatRef): Promise<SessionKey> {
      const own = sessionKeyOf(chat);
      const person = await persons.inChat(chat);
      return person === undefined ? own : targetOf(own, person);
    },
    /** Where what is said in a conversation goes, whose newest message this is. */
    async answersTo(session: SessionKey, newest: InboundMessage): Promise<ChatRef> {
      const move = await moves.get(session);
      if (move === undefined) return newest.chat;
      const isLater = newest.sender.kind === 'person' && newest.receivedAt > move.at;
      return isLater ? newest.chat : move.to;
    },
    /** What was asked up to then is answered in the other chat, which takes part from now on. */
    async move(session: SessionKey, move: Move): Promise<void> {
      const own = sessionKeyOf(move.to);
      const route = routes.write(own, own === session ? undefined : { session });
      await book.write([route, moves.write(session, move)]);
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

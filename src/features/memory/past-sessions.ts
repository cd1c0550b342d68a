// Which past conversations a turn may look into: between the two of us all of that person's, over every
// door; in a group that group's alone; where nobody vouches for who writes, none.

import { OWN_DOORS } from '../../channels/door.ts';
import { chatsOf, doorOf, type Person } from '../../kernel/access/person.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import { type ChatRef, chatRefOf, sessionKeyOf } from '../../kernel/message/message.ts';
import { GROUPS_FOLDER, PEOPLE_FOLDER } from '../../kernel/message/notes.ts';
import { chatOfSession, scopeOfSession } from '../../kernel/sessions/index-file.ts';
import type { SessionIndexing } from '../../kernel/sessions/index-sessions.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { PastSessions, WhoseTurn } from '../../tools/read-back.ts';
import type { Persons } from '../people/persons.ts';
import type { TextIndex } from './memory.ts';

export type PastSessionsDeps = {
  readonly index: TextIndex;
  readonly indexing: SessionIndexing;
  readonly sessions: Pick<SessionStore, 'earlier'>;
  readonly clock: Clock;
  /** Conversations of which nothing may go where that one's model is. */
  closedTo(session: SessionKey): Promise<readonly SessionKey[]>;
  /** Built later. */
  persons(): Pick<Persons, 'get' | 'list'>;
  /** All chats of a door of our own, none of another: whoever sits at this machine has them all. */
  ownDoorChats(channel: string): Promise<readonly string[]>;
};

const OWN_FOLDER = new RegExp(`^${PEOPLE_FOLDER}/([^/]+)/$`);
const UNVERIFIED = '-unverified/';

export function createPastSessions(deps: PastSessionsDeps): PastSessions {
  return {
    async find(words, whose, limit) {
      await deps.indexing.flush();
      const scopes = (await openTo(whose, deps)).map(scopeOfSession);
      return deps.index.find(words, { scopes, limit, now: deps.clock.now() });
    },
    async read(session, whose, question) {
      const isTheirs = (await openTo(whose, deps)).includes(chatOfSession(session));
      if (!isTheirs || chatRefOf(session) === undefined) return undefined;
      return deps.sessions.earlier(session, question);
    },
  };
}

async function openTo(whose: WhoseTurn, deps: PastSessionsDeps): Promise<readonly string[]> {
  const closed = (await deps.closedTo(whose.session)).map(chatOfSession);
  return (await chatsOfTurn(whose, deps)).filter((chat) => !closed.includes(chat));
}

/** Keys of the chats whose conversations they are, without topics, that of the turn first. */
export async function chatsOfTurn(
  whose: WhoseTurn,
  { persons, ownDoorChats }: Pick<PastSessionsDeps, 'persons' | 'ownDoorChats'>,
): Promise<readonly string[]> {
  const { chat, session, person: turnPerson } = whose;
  // Whoever claims a name in an unproven mail is shown nothing of what was said under it.
  if (turnPerson.notes.endsWith(UNVERIFIED)) return [];
  const here = chatOfSession(session);
  if (turnPerson.notes.startsWith(`${GROUPS_FOLDER}/`)) return [here];
  const id = OWN_FOLDER.exec(turnPerson.notes)?.[1];
  const person = id === undefined ? await ownerIn(chat, persons()) : await persons().get(id);
  if (person === undefined) return [here];
  const own = person.session === undefined ? [] : [person.session];
  const doors = await Promise.all(person.doors.map(({ channel }) => ownDoorChats(channel)));
  const chats = [...own, ...chatsOf(person).map(sessionKeyOf)].map(chatOfSession);
  return [...new Set([here, ...chats, ...doors.flat()])];
}

/** Owners share their notes, not their conversations. */
async function ownerIn(chat: ChatRef, persons: Pick<Persons, 'list'>): Promise<Person | undefined> {
  const owners = (await persons.list()).filter(({ role }) => role === 'owner');
  return owners.length === 1 ? owners[0] : owners.find((each) => isTheirs(each, chat));
}

const isTheirs = (person: Person, { channel, account, chat }: ChatRef) =>
  chatsOf(person).some(
    (own) => own.channel === channel && own.account === account && own.chat === chat,
  ) ||
  (isOwnDoor(channel) && doorOf(person, channel) !== undefined);

export const isOwnDoor = (channel: string) => OWN_DOORS.some((door) => door.channel === channel);

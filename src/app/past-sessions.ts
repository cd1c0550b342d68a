// Which past conversations a turn may look into: between the two of us all of that person's, over every
// door; in a group that group's alone; where nobody vouches for who writes, none.

import type { SessionKey } from '../core/ids.ts';
import { type ChatRef, chatRefOf, sessionKeyOf } from '../core/message.ts';
import { GROUPS_FOLDER, PEOPLE_FOLDER } from '../core/notes.ts';
import { chatsOf, type Person } from '../core/person.ts';
import type { Persons } from '../gateway/persons.ts';
import type { Clock } from '../lib/clock.ts';
import type { TextIndex } from '../memory/memory.ts';
import { type SessionIndexing, scopeOfSession } from '../sessions/index-sessions.ts';
import type { SessionStore } from '../sessions/store.ts';
import type { PastSessions, WhoseTurn } from '../tools/session-search.ts';

export type PastSessionsDeps = {
  readonly index: TextIndex;
  readonly indexing: SessionIndexing;
  readonly sessions: Pick<SessionStore, 'earlier'>;
  readonly clock: Clock;
  /** Built later. */
  persons(): Pick<Persons, 'get' | 'list'>;
};

const OWN_FOLDER = new RegExp(`^${PEOPLE_FOLDER}/([^/]+)/$`);
const UNVERIFIED = '-unverified/';

export function createPastSessions(deps: PastSessionsDeps): PastSessions {
  return {
    async find(words, whose, limit) {
      await deps.indexing.flush();
      const scopes = await scopesOf(whose, deps.persons());
      return deps.index.find(words, { scopes, limit, now: deps.clock.now() });
    },
    async read(session, whose, question) {
      const scopes = await scopesOf(whose, deps.persons());
      if (chatRefOf(session) === undefined || !scopes.includes(scopeOfSession(session))) {
        return undefined;
      }
      return deps.sessions.earlier(session, question);
    },
  };
}

/** The scopes of the conversations, that of the turn first. */
export async function scopesOf(
  whose: WhoseTurn,
  persons: Pick<Persons, 'get' | 'list'>,
): Promise<readonly string[]> {
  // Whoever claims a name in an unproven mail is shown nothing of what was said under it.
  if (whose.person.notes.endsWith(UNVERIFIED)) return [];
  const sessions = [whose.session, ...(await sessionsOf(whose, persons))];
  return [...new Set(sessions.map(scopeOfSession))];
}

async function sessionsOf(
  { chat, person: { notes } }: WhoseTurn,
  persons: Pick<Persons, 'get' | 'list'>,
): Promise<readonly SessionKey[]> {
  if (notes.startsWith(`${GROUPS_FOLDER}/`)) return [];
  const id = OWN_FOLDER.exec(notes)?.[1];
  const person = id === undefined ? await ownerIn(chat, persons) : await persons.get(id);
  if (person === undefined) return [];
  const own = person.session === undefined ? [] : [person.session];
  return [...own, ...chatsOf(person).map(sessionKeyOf)];
}

/** Owners share their notes, not their conversations. */
async function ownerIn(chat: ChatRef, persons: Pick<Persons, 'list'>): Promise<Person | undefined> {
  const owners = (await persons.list()).filter(({ role }) => role === 'owner');
  return owners.length === 1 ? owners[0] : owners.find((each) => isTheirs(each, chat));
}

const isTheirs = (person: Person, { channel, account, chat }: ChatRef) =>
  chatsOf(person).some(
    (own) => own.channel === channel && own.account === account && own.chat === chat,
  );

// The tools of memory, and the past conversations they may read: in a private chat those of the
// person on all channels; in a group only the group's; for an unproven sender none.

import { z } from 'zod';
import { LOCAL_CHANNELS } from '../../channels/local-channel.ts';
import { chatsOf, type Person, personChannelOf } from '../../kernel/access/person.ts';
import type { TextIndex } from '../../kernel/bus/store/text-index.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import { type ChatRef, chatRefOf, sessionKeyOf } from '../../kernel/message/message.ts';
import { GROUPS_FOLDER, PEOPLE_FOLDER, verbatim } from '../../kernel/message/untrusted.ts';
import type { Persons } from '../../kernel/people/persons.ts';
import type { OfferUndo } from '../../kernel/questions/undo.ts';
import { chatOfSession, scopeOfSession } from '../../kernel/sessions/index-file.ts';
import type { SessionIndexing } from '../../kernel/sessions/index-sessions.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import { headOf } from '../../lib/text/cut.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { PastSessions, WhoseTurn } from '../../tools/read-back.ts';
import { readDescription, type Tool, type ToolContext } from '../../tools/tool.ts';
import { QUERY_NAMES } from '../../tools/toolbox.ts';
import type { MemoryStore } from './notes.ts';

type PastSessionsDeps = {
  readonly index: TextIndex;
  readonly indexing: SessionIndexing;
  readonly sessions: Pick<SessionStore, 'earlier'>;
  readonly clock: Clock;
  /** Conversations whose content must not reach the model of the given one. */
  closedTo(session: SessionKey): Promise<readonly SessionKey[]>;
  readonly persons: Pick<Persons, 'get' | 'list'>;
  /**
   * All chats of a local channel, whose users all have access to this machine; empty for other
   * channels.
   */
  localChats(channel: string): Promise<readonly string[]>;
};

const OWN_FOLDER = new RegExp(`^${PEOPLE_FOLDER}/([^/]+)/$`);
const UNVERIFIED = '-unverified/';

export function createPastSessions(deps: PastSessionsDeps): PastSessions {
  return {
    async find(words, whose, limit) {
      const chats = await openTo(whose, deps);
      await deps.indexing.flushFor(chats);
      const scopes = chats.map(scopeOfSession);
      return deps.index.find(words, { scopes, limit, now: deps.clock.now() });
    },
    async read(session, whose, question) {
      const isTheirs = (await openTo(whose, deps)).includes(chatOfSession(session));
      if (!isTheirs || chatRefOf(session) === undefined) return undefined;
      return deps.sessions.earlier(session, question);
    },
  };
}

/** Keys of the chats, without topics, whose conversations the model of the turn may read. */
export async function openTo(
  whose: WhoseTurn,
  deps: Pick<PastSessionsDeps, 'closedTo' | 'persons' | 'localChats'>,
): Promise<readonly string[]> {
  const closed = (await deps.closedTo(whose.session)).map(chatOfSession);
  return (await chatsOfTurn(whose, deps)).filter((chat) => !closed.includes(chat));
}

/** Keys of the chats whose conversations may be read, without topics; that of the turn first. */
export async function chatsOfTurn(
  whose: WhoseTurn,
  { persons, localChats }: Pick<PastSessionsDeps, 'persons' | 'localChats'>,
): Promise<readonly string[]> {
  const { chat, session, person: turnPerson } = whose;
  // An unproven sender sees nothing of what was said under the claimed name.
  if (turnPerson.notes.endsWith(UNVERIFIED)) return [];
  const here = chatOfSession(session);
  if (turnPerson.notes.startsWith(`${GROUPS_FOLDER}/`)) return [here];
  const id = OWN_FOLDER.exec(turnPerson.notes)?.[1];
  const person = id === undefined ? await ownerIn(chat, persons) : await persons.get(id);
  if (person === undefined) return [here];
  const own = person.session === undefined ? [] : [person.session];
  const doors = await Promise.all(person.doors.map(({ channel }) => localChats(channel)));
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
  (isLocalChannel(channel) && personChannelOf(person, channel) !== undefined);

export const isLocalChannel = (channel: string) =>
  LOCAL_CHANNELS.some((local) => local.channel === channel);

// Tool: searches facts, notes and extracts of conversations.

const MAX_QUERY_CHARS = 1000;
const EXTRACT = /^\S*memory\/sessions\//m;

const recallInput = z.object({
  query: z.string().trim().min(1).max(MAX_QUERY_CHARS).describe('Words that the note may contain.'),
});
type RecallInput = z.infer<typeof recallInput>;

export function createRecall(memory: MemoryStore): Tool<RecallInput> {
  return {
    name: 'recall',
    aliases: ['search_memory', 'memory_search', 'search_memories', 'get_memory'],
    parameterAliases: { query: QUERY_NAMES },
    ...readDescription('recall'),
    access: 'read',
    // Extracts of conversations contain untrusted content.
    taints: true,
    isOwn: (_input, found) => !EXTRACT.test(found),
    input: recallInput,
    describe: ({ query }) => query,
    async run({ query }, { person }) {
      const hits = await memory.recall(query, person.notes);
      if (hits.length === 0) return 'Nothing is noted about this.';
      return hits.map(({ source, line, text }) => `${source}:${line}\n${text}`).join('\n\n');
    },
  };
}

// Tool: stores a fact for all later conversations, a note of the day, or the lesson of a
// correction.

const MAX_FACT_CHARS = 2000;
const DETAIL_CHARS = 60;
const SHOWN_CHARS = 300;

const rememberInput = z.object({
  fact: z
    .string()
    .trim()
    .min(1)
    .max(MAX_FACT_CHARS)
    .describe('One fact as a full sentence, clear without this conversation.'),
  kind: z
    .enum(['fact', 'note', 'learning'])
    .default('fact')
    .describe('fact: lasting; note: of today; learning: what the person corrected.'),
});
type RememberInput = z.infer<typeof rememberInput>;

/** The subject kind of taking back a note from a tainted conversation. */
export const NOTE_UNDO = 'undo-note';

export function createRemember(memory: MemoryStore, offerUndo: OfferUndo): Tool<RememberInput> {
  /** Such a line is in no prompt, and recalling it taints. */
  async function noteUntrusted(fact: string, { person, chat, payer }: ToolContext) {
    const id = await memory.noteUntrusted(fact, person);
    if (id === undefined) return 'This was remembered before.';
    const text = `Noted, apart from what I rely on: ${verbatim(headOf(fact, SHOWN_CHARS))}`;
    if (payer !== undefined) {
      await offerUndo({ subject: NOTE_UNDO, id, text, to: { chat, sender: payer.sender } });
    }
    return 'Noted as untrusted: `recall` finds it, and later conversations are not shown it by themselves.';
  }

  return {
    name: 'remember',
    aliases: [
      ...['save_memory', 'add_memory', 'memorize', 'store_memory'],
      { name: 'add_note', implies: { kind: 'note' } },
    ],
    parameterAliases: { fact: ['text', 'content', 'memory', 'note'], kind: ['type'] },
    ...readDescription('remember'),
    access: 'write',
    // Stored facts are in the prompt of later turns.
    accessOf: (_input, isTainted) => (isTainted ? 'rules' : 'write'),
    isForOneself: true,
    reachOf: () => 'notes',
    input: rememberInput,
    describe: ({ fact }) => headOf(fact, DETAIL_CHARS),
    async run({ fact, kind }, context) {
      const { person, isTainted, askedAt } = context;
      // The owner who approved it has read it.
      if (isTainted && askedAt === undefined) return noteUntrusted(fact, context);
      if (kind === 'learning') {
        await memory.learn([{ kind: 'correction', succeeded: false, context: fact }], person);
        return 'Noted for the next review of the memory.';
      }
      const result =
        kind === 'fact'
          ? await memory.remember(fact, person.notes)
          : await memory.note(fact, person);
      if (result === 'known') return 'This is already remembered.';
      return kind === 'fact' ? 'Remembered.' : 'Noted for today.';
    },
  };
}

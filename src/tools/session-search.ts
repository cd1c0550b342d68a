// Tool: finds what was said in past conversations of the person, over all their doors, and reads it
// again. In a group only that group's. Whose they are is found out next door; nobody, not even an
// owner, is shown those of others here.

import { z } from 'zod';
import type { FoundPart } from '../features/memory/memory.ts';
import { ToolError } from '../kernel/message/errors.ts';
import { type SessionKey, sessionKey } from '../kernel/message/ids.ts';
import {
  type EarlierQuestion,
  type EarlierTurns,
  earlierText,
  tellsForeign,
} from '../kernel/sessions/rules/earlier.ts';
import { placeOfWords } from '../kernel/sessions/rules/extract.ts';
import { isoTime } from '../kernel/sessions/rules/file.ts';
import { partOf } from '../lib/text/cut.ts';
import { readDescription } from './description.ts';
import type { Tool, ToolContext } from './tool.ts';
import { QUERY_NAMES } from './toolbox.ts';

export type WhoseTurn = Pick<ToolContext, 'session' | 'chat' | 'person'>;

export type PastSessions = {
  /** In all that whoever's turn it is may see. @throws where the index is not usable */
  find(words: string, whose: WhoseTurn, limit: number): Promise<readonly FoundPart[]>;
  /** Undefined where the conversation is not theirs. */
  read(
    session: SessionKey,
    whose: WhoseTurn,
    question: EarlierQuestion,
  ): Promise<EarlierTurns | undefined>;
};

export type SessionSearchDeps = {
  readonly past: PastSessions;
  /** Longest result of a tool. */
  maxResultChars(): number;
};

const MAX_QUERY_CHARS = 500;
const MAX_KEY_CHARS = 500;
const DEFAULT_HITS = 8;
const MAX_HITS = 30;
const READ_TURNS = 5;
const CHARS_BEFORE = 150;
const CHARS_BEHIND = 350;
const OWN = '[Only words of the person themselves.]';

const searchInput = z.object({
  query: z
    .string()
    .trim()
    .max(MAX_QUERY_CHARS)
    .default('')
    .describe('Words that were said, not a question.'),
  conversation: z
    .string()
    .max(MAX_KEY_CHARS)
    .optional()
    .describe('Read this conversation instead, named as in a result; with `from`.'),
  from: z.int().min(0).optional().describe('Number of the turn to read from.'),
  count: z.int().min(1).max(MAX_HITS).default(DEFAULT_HITS).describe('At most so many hits.'),
});
type SearchInput = z.infer<typeof searchInput>;

export function createSessionSearch({
  past,
  maxResultChars,
}: SessionSearchDeps): Tool<SearchInput> {
  return {
    name: 'session_search',
    aliases: ['search_sessions', 'search_conversations', 'conversation_search', 'past_chats'],
    parameterAliases: {
      query: QUERY_NAMES,
      conversation: ['session', 'chat', 'key'],
      from: ['turn'],
      count: ['limit', 'max_results'],
    },
    ...readDescription('session_search'),
    access: 'read',
    taints: true,
    isOwn: (_input, found) => found.startsWith(OWN),
    input: searchInput,
    describe: ({ query, conversation }) => conversation ?? query,
    async run({ query, conversation, from, count }, context) {
      if (conversation !== undefined) {
        const question = { from: from ?? 0, maxTurns: READ_TURNS };
        const turns = await past.read(sessionKey(conversation), context, question);
        return readText(turns, maxResultChars());
      }
      if (query === '') throw new ToolError('invalid_arguments', 'give words to look for');
      const found = await past.find(query, context, count);
      if (found.length === 0) return 'Nothing was found in past conversations.';
      const head = found.some(({ isForeign }) => isForeign) ? [] : [OWN];
      return [...head, ...found.map((hit) => hitText(hit, query, context.session))].join('\n\n');
    },
  };
}

function readText(turns: EarlierTurns | undefined, maxChars: number): string {
  if (turns === undefined) {
    throw new ToolError('not_found', 'there is no such conversation of this person');
  }
  if (turns.turns.length === 0) {
    return 'Nothing can be read there any more: the conversation was begun anew behind it.';
  }
  const text = earlierText(turns, 0, maxChars);
  return tellsForeign(text) ? text : text.replace('of this conversation', 'of that conversation');
}

function hitText({ at, label, place, role, text }: FoundPart, query: string, here: SessionKey) {
  const when = isoTime(at).slice(0, 16).replace('T', ' ');
  const isHere = label === here;
  const readOn = isHere
    ? `read_earlier with from: ${place}`
    : `session_search with conversation: "${label}", from: ${place}`;
  const where = isHere ? 'this conversation' : label;
  const who = role === 'user' ? 'person' : 'you';
  return `${when} UTC, ${where}, turn ${place} (read on: ${readOn})\n${who}: ${around(text, query)}`;
}

function around(text: string, query: string): string {
  const middle = placeOfWords(text, query);
  const start = Math.max(0, middle - CHARS_BEFORE);
  const end = Math.min(text.length, middle + CHARS_BEHIND);
  const cut = partOf(text, start, end).replace(/\s+/g, ' ').trim();
  return `${start > 0 ? '…' : ''}${cut}${end < text.length ? '…' : ''}`;
}

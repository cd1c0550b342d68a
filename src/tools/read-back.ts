// Tools that read back what is no longer in the context: earlier turns, long results, summary
// nodes, and other conversations by search.

import { z } from 'zod';
import { isWithin, nodeId, nodesInView, rangeOfNode } from '../agent/rules/context-marks.ts';
import { partOfResult, type WantedPart } from '../agent/rules/document-text.ts';
import type { FoundPart } from '../kernel/bus/store/text-index.ts';
import { isImage } from '../kernel/message/attachment.ts';
import { ToolError } from '../kernel/message/errors.ts';
import { firstSeqOf, type ResultId, type SessionKey, sessionKey } from '../kernel/message/ids.ts';
import type { ToolEntry } from '../kernel/message/transcript.ts';
import { unwrapped } from '../kernel/message/untrusted.ts';
import {
  type EarlierQuestion,
  type EarlierTurns,
  earlierText,
  parseResultId,
  placeOfWords,
  tellsUntrusted,
} from '../kernel/sessions/rules/earlier.ts';
import { isoTime } from '../kernel/sessions/rules/file.ts';
import type { SessionStore } from '../kernel/sessions/store.ts';
import { oneLine, partOf } from '../lib/text/cut.ts';
import { defineTool, type ToolContext } from './tool.ts';
import { QUERY_NAMES } from './toolbox.ts';

/** `maxResultChars`: longest result of a tool. */
type Limited<Deps> = Deps & { maxResultChars(): number };

const MAX_WORDS_CHARS = 200;
const MAX_TURNS = 20;
const MAX_MATCHES = 5;
const MIN_CHARS = 500;
const MAX_CHARS = 40_000;

const turnNumber = () => z.int().min(0).optional();
const earlierInput = z.object({
  words: z
    .string()
    .trim()
    .max(MAX_WORDS_CHARS)
    .optional()
    .describe('Only turns with all of these words; few and exact ones work best.'),
  from: turnNumber().describe('Turn number: this turn and later ones.'),
  before: turnNumber().describe('Turn number: turns before it.'),
  offset: turnNumber().describe('Character to begin at, as an earlier result said; default 0.'),
});

export function createReadEarlier({
  sessions,
  maxResultChars,
}: Limited<{ readonly sessions: Pick<SessionStore, 'earlier'> }>) {
  return defineTool({
    name: 'read_earlier',
    access: 'read',
    taints: true,
    isOwn: (_input, found) => !tellsUntrusted(found),
    input: earlierInput,
    describe: ({ words, from, before }) =>
      [words, from && `from ${from}`, before && `before ${before}`].filter(Boolean).join(', '),
    async run({ words = '', from, before, offset = 0 }, { session, turnId }) {
      const running = firstSeqOf(turnId);
      const limit = Math.min(before ?? Number.MAX_SAFE_INTEGER, running ?? Number.MAX_SAFE_INTEGER);
      const found = await sessions.earlier(session, {
        before: limit,
        ...(from === undefined ? {} : { from }),
        ...(words === '' ? {} : { words }),
        maxTurns: words === '' ? MAX_TURNS : MAX_MATCHES,
      });
      if (found.turns.length === 0) return nothing(words);
      const maxChars = Math.min(MAX_CHARS, Math.max(MIN_CHARS, maxResultChars()));
      return earlierText(found, offset, maxChars);
    },
  });
}

const nothing = (words: string) =>
  words === ''
    ? 'There is nothing earlier in this conversation.'
    : 'No earlier turn of this conversation contains all of these words. Try fewer or other words.';

// Tool: reads on in an earlier tool result of the same conversation. It finds nothing of other
// conversations, and untrusted content stays marked as untrusted.

export type ReadResultDeps = Limited<{
  /** A result with all of its text. */
  find(session: SessionKey, id: ResultId): Promise<ToolEntry | undefined>;
}>;

const MAX_SEARCH_CHARS = 500;
const resultInput = z.object({
  id: z.string().min(1).max(40).describe('Id of the result, like "r12.3".'),
  lines: z
    .string()
    .max(40)
    .optional()
    .describe('Only these lines, "a:b": 1-based, both included. Example: "10:40".'),
  from: z.int().min(0).optional().describe('Character to begin at; default 0.'),
  path: z
    .string()
    .max(MAX_SEARCH_CHARS)
    .optional()
    .describe('In JSON: only this value. Example: "items[3].name", "items[0:20]".'),
  search: z
    .string()
    .min(1)
    .max(MAX_SEARCH_CHARS)
    .optional()
    .describe('Only places with these words; case is ignored.'),
});

/** Precedes untrusted content. */
const FOREIGN = '[Untrusted content.]';
/** Reserved for the lines around a text. */
const ROOM_CHARS = 300;

export function createReadResult(deps: ReadResultDeps) {
  return defineTool({
    name: 'read_result',
    aliases: ['get_result', 'show_result', 'expand_result', 'tool_result'],
    parameterAliases: {
      id: ['result', 'result_id', 'ref'],
      lines: ['line_range', 'range'],
      from: ['offset', 'start'],
      path: ['json_path', 'jsonpath', 'key'],
      search: ['query', 'words', 'find', 'grep'],
    },
    access: 'read',
    taints: true,
    isOwn: (_input, found) => !found.startsWith(FOREIGN),
    input: resultInput,
    describe: ({ id, path, lines, search }) => [id, path ?? lines ?? search ?? ''].join(' ').trim(),
    async run({ id, ...wanted }, context) {
      const name = parseResultId(id);
      if (name === undefined) {
        throw new ToolError('invalid_arguments', 'an id looks like "r12.3"; the result shows it');
      }
      const entry = await deps.find(context.session, name);
      if (entry === undefined) {
        throw new ToolError('not_found', 'this conversation has no result with this id');
      }
      showImages(entry, context);
      return partText(entry, name, given(wanted), deps);
    },
  });
}

function showImages({ media = [] }: ToolEntry, { show }: ToolContext): void {
  for (const image of media.filter(isImage)) show?.(image);
}

/** Drops fields that a model leaves empty. */
function given(wanted: Omit<z.infer<typeof resultInput>, 'id'>): WantedPart {
  const isGiven = ([, value]: [string, unknown]) => value !== undefined && `${value}`.trim() !== '';
  return Object.fromEntries(Object.entries(wanted).filter(isGiven));
}

function partText(
  { name, text, whole = unwrapped(text), isForeign }: ToolEntry,
  id: ResultId,
  wanted: WantedPart,
  { maxResultChars }: ReadResultDeps,
): string {
  const most = maxResultChars();
  const maxChars = Math.min(MAX_CHARS, Math.max(Math.floor(most / 2), most - ROOM_CHARS));
  const part = partOfResult(whole, wanted, maxChars);
  const head = isForeign === true ? `${FOREIGN}\n` : '';
  if (part.kind === 'found') return `${head}[result ${id} of ${name}; ${part.about}]\n${part.text}`;
  // The error is part of the result's text.
  if (isForeign === true) return `${head}[nothing of result ${id}: ${part.problem}]`;
  throw new ToolError('invalid_arguments', part.problem);
}

// Tool: shows the messages that a node of the conversation's summary stands for, as they were
// recorded. Only of this conversation: a node is identified by its turns, which are looked up only
// here.

export type ExpandDeps = Limited<{ readonly sessions: Pick<SessionStore, 'earlier' | 'load'> }>;

const MAX_FILES = 1000;
const MAX_ID_CHARS = 50;
const CHILDREN = 'Made of the nodes ';

const expandInput = z.object({
  node: z.string().trim().min(1).max(MAX_ID_CHARS).describe('Id of the node, e.g. t12-40.'),
  from: turnNumber().describe('Turn of the node to begin at; default: its first.'),
  offset: turnNumber().describe('Character to begin at, as an earlier result said; default 0.'),
});

export function createExpand({ sessions, maxResultChars }: ExpandDeps) {
  return defineTool({
    name: 'expand',
    aliases: ['lcm_expand', 'expand_node', 'expand_summary'],
    parameterAliases: { node: ['id', 'node_id', 'message_ids', 'nodes'] },
    access: 'read',
    taints: true,
    isOwn: (_input, found) => !tellsUntrusted(found),
    input: expandInput,
    describe: ({ node, from }) => [node, from && `from ${from}`].filter(Boolean).join(', '),
    async run({ node, from, offset = 0 }, { session, turnId }) {
      const nodes = nodesInView(await sessions.load(session));
      const range = rangeOfNode(node);
      const shown = range && nodes.find((each) => isWithin(range, each));
      if (range === undefined || shown === undefined) {
        throw new ToolError('not_found', unknown(nodes));
      }
      const running = firstSeqOf(turnId) ?? Number.MAX_SAFE_INTEGER;
      const found = await sessions.earlier(session, {
        from: Math.max(range.from, from ?? 0),
        before: Math.min(range.before, running),
        maxTurns: MAX_TURNS,
        maxFiles: MAX_FILES,
      });
      if (found.turns.length === 0) return 'Its messages are no longer available.';
      const isWhole = range.from === shown.from && range.before === shown.before;
      const children = isWhole ? (shown.children ?? []) : [];
      const more = children.length === 0 ? '' : `\n\n${CHILDREN}${children.join(', ')}.`;
      const maxChars = Math.min(MAX_CHARS, Math.max(MIN_CHARS, maxResultChars())) - more.length;
      return `${earlierText(found, offset, maxChars)}${more}`;
    },
  });
}

function unknown(nodes: ReturnType<typeof nodesInView>): string {
  if (nodes.length === 0)
    return 'This conversation has no nodes; read_earlier shows earlier turns.';
  return `There is no such node here. These are in view: ${nodes.map(nodeId).join(', ')}.`;
}

// Tool: finds and rereads what was said in past conversations of the person, on all their channels.
// In a group only that group's. The port determines whose they are; nobody, not even an owner, sees
// other people's here.

export type WhoseTurn = Pick<ToolContext, 'session' | 'chat' | 'person'>;

export type PastSessions = {
  /** Searches everything that the person of the turn may see. @throws if the index is not usable */
  find(words: string, whose: WhoseTurn, limit: number): Promise<readonly FoundPart[]>;
  /** Undefined if the conversation is not theirs. */
  read(
    session: SessionKey,
    whose: WhoseTurn,
    question: EarlierQuestion,
  ): Promise<EarlierTurns | undefined>;
};

const MAX_QUERY_CHARS = 500;
const MAX_KEY_CHARS = 500;
const DEFAULT_HITS = 8;
const MAX_HITS = 30;
const READ_TURNS = 5;
const CHARS_BEFORE = 150;
const CHARS_BEHIND = 350;
const OWN = "[Only the person's own words.]";

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
  count: z.int().min(1).max(MAX_HITS).default(DEFAULT_HITS).describe('Maximum number of hits.'),
});

export function createSessionSearch({
  past,
  maxResultChars,
}: Limited<{ readonly past: PastSessions }>) {
  return defineTool({
    name: 'session_search',
    aliases: ['search_sessions', 'search_conversations', 'conversation_search', 'past_chats'],
    parameterAliases: {
      query: QUERY_NAMES,
      conversation: ['session', 'chat', 'key'],
      from: ['turn'],
      count: ['limit', 'max_results'],
    },
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
      if (query === '') throw new ToolError('invalid_arguments', 'give words to search for');
      const found = await past.find(query, context, count);
      if (found.length === 0) return 'Nothing was found in past conversations.';
      const head = found.some(({ isForeign }) => isForeign) ? [] : [OWN];
      return [...head, ...found.map((hit) => hitText(hit, query, context.session))].join('\n\n');
    },
  });
}

function readText(turns: EarlierTurns | undefined, maxChars: number): string {
  if (turns === undefined) {
    throw new ToolError('not_found', 'there is no such conversation of this person');
  }
  if (turns.turns.length === 0) {
    return 'It can no longer be read: the conversation was restarted since.';
  }
  const text = earlierText(turns, 0, maxChars);
  return tellsUntrusted(text) ? text : text.replace('of this conversation', 'of that conversation');
}

/** A hit of a conversation, and how to read on there. */
export function hitText(
  { at, label, place, role, text }: Pick<FoundPart, 'at' | 'label' | 'place' | 'role' | 'text'>,
  query: string,
  here: SessionKey,
): string {
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
  const cut = oneLine(partOf(text, start, end));
  return `${start > 0 ? '…' : ''}${cut}${end < text.length ? '…' : ''}`;
}

// Tool: one question to everything that may know: what is remembered, past conversations, the mailbox,
// files, the web.

import type { Tool, ToolContext } from '../tool.ts';
import { createMetaTool, type SubTool } from './meta-tool.ts';
import {
  fittingSources,
  nextSources,
  SEARCH_SOURCES,
  type SearchSource,
  tellingWords,
} from './rules/search-route.ts';

const WEB_HITS = 5;
const FILE_HITS = 15;
const NOTHING = /^(?:Nothing (?:was found|is noted)|There is no)/;

export type SearchDeps = {
  /** The tools that are asked, those that there are. */
  readonly tools: Partial<Readonly<Record<SearchSource, Tool>>>;
  readonly maxResultChars: () => number;
  /** Whether the agent gets the tool of this name. */
  isSwitchedOn(tool: string): boolean;
};

export function createSearch({ tools, maxResultChars, isSwitchedOn }: SearchDeps): Tool {
  const subTools = SEARCH_SOURCES.flatMap((name): SubTool<SearchSource>[] => {
    const tool = tools[name];
    return tool === undefined ? [] : [subToolOf(name, tool, isSwitchedOn)];
  });
  const aliases = ['find_out', 'lookup', 'look_up', 'search_all', 'ask_sources'];
  const setup = { name: 'search', aliases, names: SEARCH_SOURCES, subTools, maxResultChars };
  return createMetaTool({ ...setup, route: fittingSources, widen: nextSources }) as Tool;
}

function subToolOf(
  name: SearchSource,
  tool: Tool,
  isSwitchedOn: SearchDeps['isSwitchedOn'],
): SubTool<SearchSource> {
  return {
    name,
    tool: tool.name,
    access: tool.access,
    isAvailable: () => isSwitchedOn(tool.name) && (tool.isAvailable?.() ?? true),
    async ask(question: string, context: ToolContext) {
      const wanted = ARGUMENTS[name](question);
      if (wanted === undefined) return '';
      const found = await tool.run(tool.input.parse(wanted), context);
      return NOTHING.test(found) ? '' : found;
    },
  };
}

/** What each is asked; undefined where the question gives it nothing to look for. */
const ARGUMENTS: Readonly<Record<SearchSource, (question: string) => unknown>> = {
  memory: (query) => ({ query }),
  sessions: (question) => byWords(question, (words) => ({ query: words.join(' ') })),
  mailbox: (question) => byWords(question, (words) => ({ query: words.join(' ') })),
  files: (question) =>
    byWords(question, (words) => ({ query: anyOf(words), regex: true, count: FILE_HITS })),
  web: (query) => ({ query, count: WEB_HITS }),
};

function byWords<T>(question: string, make: (words: readonly string[]) => T): T | undefined {
  const words = tellingWords(question);
  return words.length === 0 ? undefined : make(words);
}

const anyOf = (words: readonly string[]) =>
  words.map((word) => word.replace(/[^\p{L}\p{N}]/gu, (sign) => `\\${sign}`)).join('|');

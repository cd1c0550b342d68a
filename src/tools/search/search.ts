// The search tools, and the one that sends a question to all others: memory, past conversations,
// mailbox, files, the web.

import type { Environment } from '../../kernel/config/environment.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import { createSafeFetch, type SafeFetch } from '../../lib/net/safe-fetch.ts';
import type { WorkspaceAccess } from '../files/workspace-access.ts';
import type { Tool, ToolContext } from '../tool.ts';
import { toolboxSettings } from '../toolbox.ts';
import { createFinancialSearch, type FinanceDeps } from './financial-search.ts';
import { createMetaTool, type SubTool } from './meta-tool.ts';
import {
  fittingSources,
  nextSources,
  SEARCH_SOURCES,
  type SearchSource,
  tellingWords,
} from './rules/search-route.ts';
import { createSearchFiles } from './search-files.ts';
import { createWebSearch, type WebSearchDeps } from './web-search.ts';

const WEB_HITS = 5;
const FILE_HITS = 15;
const NOTHING = /^(?:Nothing (?:was found|is noted)|There is no)/;

type SearchDeps = {
  /** The tools that are asked, those that there are. */
  readonly tools: Partial<Readonly<Record<SearchSource, Tool>>>;
  readonly maxResultChars: () => number;
  /** Whether the agent gets the tool of this name. */
  isSwitchedOn(tool: string): boolean;
};

function createSearch({ tools, maxResultChars, isSwitchedOn }: SearchDeps): Tool {
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

// The tools that look things up outside of the conversation, and the one that asks the others.

export type SearchToolsDeps = {
  readonly web: WebSearchDeps;
  readonly finance: Omit<FinanceDeps, 'maxResultChars'>;
  readonly maxResultChars: () => number;
  /** Whether the agent gets the tool of this name: what is switched off is not asked in passing. */
  isSwitchedOn(tool: string): boolean;
};

/** `others`: tools from elsewhere that `search` asks too. */
export function createSearchTools(
  { web, finance, maxResultChars, isSwitchedOn }: SearchToolsDeps,
  access: WorkspaceAccess,
  others: Partial<Readonly<Record<SearchSource, Tool>>>,
): readonly Tool[] {
  const webSearch = createWebSearch(web);
  const searchFiles = createSearchFiles(access);
  const tools = { ...others, files: searchFiles, web: webSearch };
  return [
    webSearch,
    searchFiles,
    createSearch({ tools, maxResultChars, isSwitchedOn }),
    createFinancialSearch({ ...finance, maxResultChars }),
  ];
}

// Builds what looks things up at services that the owner configured.

const BRAVE_KEY = 'BRAVE_API_KEY';
const FINANCE_KEY = 'FINANCIAL_DATASETS_API_KEY';

export function buildSearch(live: LiveConfig, env: Environment): SearchToolsDeps {
  return {
    web: {
      fetchFrom,
      redact: (text) => live.redact(text),
      settings() {
        const { search, enabled } = live.config.tools.web;
        const braveKey = search.braveApiKey || (env[BRAVE_KEY] ?? '');
        return { ...search, braveKey, engines: enabled ? search.engines : [] };
      },
    },
    finance: {
      fetchFrom,
      settings() {
        const { finance } = live.config.tools;
        return { ...finance, apiKey: finance.apiKey || (env[FINANCE_KEY] ?? '') };
      },
    },
    maxResultChars: () => live.defaults.maxToolResultChars,
    isSwitchedOn: (tool) => !toolboxSettings(live.config).disabled.includes(tool),
  };
}

/** Only the host that the owner named, wherever it is; a redirect leads nowhere else. */
function fetchFrom(origin: string): SafeFetch {
  const { host, hostname, port, protocol } = new URL(origin);
  const named = port === '' ? `${hostname}:${protocol === 'http:' ? 80 : 443}` : host;
  const rules = { ports: [], allowPrivateHosts: [named] };
  return createSafeFetch({ rules: () => rules });
}

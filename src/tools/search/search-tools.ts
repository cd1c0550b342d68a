// The tools that look things up outside of the conversation, and the one that asks the others.

import type { WorkspaceAccess } from '../files/workspace-access.ts';
import { createFinancialSearch, type FinanceDeps } from '../finance/financial-search.ts';
import type { Tool } from '../tool.ts';
import type { SearchSource } from './rules/search-route.ts';
import { createSearch } from './search.ts';
import { createSearchFiles } from './search-files.ts';
import { createWebSearch, type WebSearchDeps } from './web-search.ts';

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

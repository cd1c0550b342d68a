// What the search tools need, for tests: nothing is set up unless a test says where it is.

import { createSafeFetch } from '../../src/lib/net/safe-fetch.ts';
import { financeSection, searchSection } from '../../src/tools/exec/settings.ts';
import type { SearchToolsDeps } from '../../src/tools/search/search.ts';

export type SearchSetup = {
  readonly searxngUrl?: string;
  readonly braveUrl?: string;
  readonly braveKey?: string;
  readonly financeBase?: string;
  readonly financeKey?: string;
  /** Names of tools. */
  readonly switchedOff?: readonly string[];
};

export function createSearchSetup(setup: SearchSetup = {}): SearchToolsDeps {
  const { searxngUrl = '', braveUrl, braveKey = '', financeBase, financeKey = '' } = setup;
  const search = searchSection.parse({ searxngUrl, ...(braveUrl && { braveUrl }) });
  const finance = financeSection.parse({
    apiKey: financeKey,
    ...(financeBase && { apiBase: financeBase }),
  });
  const fetchFrom = (origin: string) =>
    createSafeFetch({
      rules: () => ({ ports: [], allowPrivateHosts: [new URL(origin).host] }),
    });
  return {
    web: {
      fetchFrom,
      redact: (text) => text.replaceAll('the-secret', '[redacted]'),
      settings: () => ({ ...search, braveKey }),
    },
    finance: { fetchFrom, settings: () => finance },
    maxResultChars: () => 10_000,
    isSwitchedOn: (tool) => setup.switchedOff?.includes(tool) !== true,
  };
}

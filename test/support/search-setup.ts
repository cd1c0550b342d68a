// What the search tools need, for tests: nothing is set up unless a test says where it is.

import type { z } from 'zod';
import { createSafeFetch } from '../../src/lib/net/safe-fetch.ts';
import { financeSection, searchSection } from '../../src/tools/exec/settings.ts';
import type { SearchToolsDeps } from '../../src/tools/search/search.ts';

export type SearchSetup = {
  /** `tools.web.search`; no public engine unless it names one. */
  readonly search?: z.input<typeof searchSection>;
  /** By engine. */
  readonly keys?: Readonly<Record<string, string>>;
  readonly financeBase?: string;
  readonly financeKey?: string;
  /** Names of tools. */
  readonly switchedOff?: readonly string[];
};

export function createSearchSetup(setup: SearchSetup = {}): SearchToolsDeps {
  const { search: section = {}, keys = {}, financeBase, financeKey = '' } = setup;
  const search = searchSection.parse({ engines: ['searxng', 'brave'], ...section });
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
      settings: () => ({ ...search, keys }),
    },
    finance: { fetchFrom, settings: () => finance },
    maxResultChars: () => 10_000,
    isSwitchedOn: (tool) => setup.switchedOff?.includes(tool) !== true,
  };
}

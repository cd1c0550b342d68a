// Builds what looks things up at services that the owner configured.

import type { Environment } from '../../kernel/config/environment.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import { createSafeFetch, type SafeFetch } from '../../lib/net/safe-fetch.ts';
import { toolboxSettings } from '../tool-settings.ts';
import type { SearchToolsDeps } from './search-tools.ts';

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

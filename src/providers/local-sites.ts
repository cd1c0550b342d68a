// All local model servers that were used since the start, by address. They outlive the registries of
// models, which are built anew with every configuration.

import { addressOf, type LocalServerAddress, LocalSite, type SiteDeps } from './local-site.ts';

export interface LocalSites {
  /** The same one for the same address. */
  at(server: LocalServerAddress): LocalSite;
  all(): readonly LocalSite[];
}

export function createLocalSites(deps: SiteDeps): LocalSites {
  const sites = new Map<string, LocalSite>();
  return {
    at(server) {
      const address = addressOf(server.apiBase);
      const site = sites.get(address)?.use(server) ?? new LocalSite(server, deps);
      sites.set(address, site);
      return site;
    },
    all: () => [...sites.values()],
  };
}

// How each vendor can be reached (a key in the configuration or the environment, a configured
// address, or a server found on this machine) and the default model that follows from it.

import type { Config, ProviderName } from '../kernel/config/config.ts';
import type { LocalServer } from './local-servers.ts';
import {
  CLOUD_ORDER,
  DEMO_MODEL,
  defaultModelOf,
  isLocalVendor,
  prefixOf,
} from './rules/model-names.ts';
import { vendorOf } from './vendors.ts';

export type Access = Config['providers'][ProviderName];

export type Environment = Readonly<Record<string, string | undefined>>;

/** Disables a vendor although the environment holds its key. */
const DISABLED = 'none';

export type Credentials = ReturnType<typeof createCredentials>;

export function createCredentials(
  config: Config,
  env: Environment,
  discovered: readonly LocalServer[],
) {
  const configured = (vendor: ProviderName) => config.providers[vendor].apiKey;
  const fromEnvironment = (vendor: ProviderName) =>
    vendorOf(vendor)
      .keyVariables.map((name) => env[name] ?? '')
      .find((key) => key !== '') ?? '';

  function firstFound(): string {
    const enabled = CLOUD_ORDER.filter((vendor) => configured(vendor) !== DISABLED);
    const keyed =
      enabled.find((vendor) => configured(vendor) !== '') ??
      enabled.find((vendor) => fromEnvironment(vendor) !== '');
    if (keyed !== undefined) return defaultModelOf(keyed);
    const server = discovered.find(({ models }) => models.length > 0);
    return server === undefined ? DEMO_MODEL : `${prefixOf(server.vendor)}/${server.models[0]}`;
  }

  return {
    /** How to reach a vendor; undefined if no credentials are known. */
    accessTo(vendor: ProviderName): Access | undefined {
      const row = vendorOf(vendor);
      const own = config.providers[vendor];
      const found = discovered.find((server) => server.vendor === vendor)?.apiBase;
      const apiBase = own.apiBase.replace(/\/+$/, '') || found || row.apiBase;
      const proxy = own.proxy || config.network.proxy;
      const isDisabled = own.apiKey === DISABLED;
      if (isLocalVendor(vendor)) return { apiKey: isDisabled ? '' : own.apiKey, apiBase, proxy };
      const apiKey = isDisabled ? '' : own.apiKey || fromEnvironment(vendor);
      return apiKey !== '' || own.apiBase !== '' ? { apiKey, apiBase, proxy } : undefined;
    },
    /** The default model when none is configured. */
    firstFound: firstFound(),
  };
}

/** For one command: a running gateway looks for servers all the time. */
const DISCOVERY_DEADLINE_MS = 1000;

/** Looks for servers on this machine only if nothing else names a model. */
export async function discoverWhereNeeded(
  config: Config,
  env: Environment,
): Promise<readonly LocalServer[]> {
  if (defaultModelIn(config, env) !== DEMO_MODEL) return [];
  const { discoverLocalModels } = await import('./local-servers.ts');
  return discoverLocalModels({ signal: AbortSignal.timeout(DISCOVERY_DEADLINE_MS) });
}

/**
 * Name of the model that would answer, including servers on this machine; it need not be available.
 */
export async function findDefaultModel(config: Config, env: Environment): Promise<string> {
  return defaultModelIn(config, env, await discoverWhereNeeded(config, env));
}

const defaultModelIn = (config: Config, env: Environment, found: readonly LocalServer[] = []) =>
  config.agents.defaults.model || createCredentials(config, env, found).firstFound;

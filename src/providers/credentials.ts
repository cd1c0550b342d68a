// Which vendors can be asked: a key in the configuration, one in the environment, a configured base, or
// a server found on this machine.

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

export type Access = {
  readonly apiKey: string;
  readonly apiBase: string;
};

export type Environment = Readonly<Record<string, string | undefined>>;

/** The original's way of switching a vendor off although the environment holds its key. */
const DISABLED = 'none';

export interface Credentials {
  /** How to reach a vendor; undefined when nothing is known that would let us in. */
  accessTo(vendor: ProviderName): Access | undefined;
  /** The model in force when none is configured. */
  readonly firstFound: string;
}

export function createCredentials(
  config: Config,
  env: Environment,
  discovered: readonly LocalServer[],
): Credentials {
  function configured(vendor: ProviderName): string {
    return config.providers[vendor].apiKey;
  }

  function fromEnvironment(vendor: ProviderName): string {
    return (
      vendorOf(vendor)
        .keyVariables.map((name) => env[name] ?? '')
        .find((key) => key !== '') ?? ''
    );
  }

  function accessTo(vendor: ProviderName): Access | undefined {
    const row = vendorOf(vendor);
    const own = config.providers[vendor];
    const found = discovered.find((server) => server.vendor === vendor)?.apiBase;
    const apiBase = trimmed(own.apiBase) || found || row.apiBase;
    if (isLocalVendor(vendor)) return { apiKey: keyOrNothing(own.apiKey), apiBase };
    const apiKey = own.apiKey === DISABLED ? '' : own.apiKey || fromEnvironment(vendor);
    const reachable = apiKey !== '' || own.apiBase !== '';
    return reachable ? { apiKey, apiBase } : undefined;
  }

  function firstFound(): string {
    const enabled = CLOUD_ORDER.filter((vendor) => configured(vendor) !== DISABLED);
    const keyed =
      enabled.find((vendor) => configured(vendor) !== '') ??
      enabled.find((vendor) => fromEnvironment(vendor) !== '');
    if (keyed !== undefined) return defaultModelOf(keyed);
    const server = discovered.find(({ models }) => models.length > 0);
    const model = server?.models[0];
    if (server === undefined || model === undefined) return DEMO_MODEL;
    return `${prefixOf(server.vendor)}/${model}`;
  }

  return { accessTo, firstFound: firstFound() };
}

const trimmed = (base: string) => base.replace(/\/+$/, '');
const keyOrNothing = (key: string) => (key === DISABLED ? '' : key);

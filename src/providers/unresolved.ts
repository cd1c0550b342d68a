// Why a model name leads nowhere, with what the owner can do about it.

import type { ProviderName } from '../kernel/config/config.ts';
import { ProviderError } from '../kernel/message/errors.ts';
import { nearestName } from '../lib/text/nearest.ts';
import { CLOUD_ORDER, LOCAL_VENDORS, prefixOf } from './rules/model-names.ts';
import { namesPeer } from './rules/peer-name.ts';
import { vendorOf } from './vendors.ts';

const PREFIXES = [...CLOUD_ORDER, ...LOCAL_VENDORS].map(prefixOf);

export function unknownModel(name: string): ProviderError {
  if (namesPeer(name)) return unknownPeer(name);
  return new ProviderError('no vendor serves this model name', {
    failure: { kind: 'unknown_model' },
    provider: 'none',
    model: name,
    userText: `I do not know which vendor serves the model "${name}". ${howToName(name)}`,
  });
}

function howToName(name: string): string {
  const slash = name.indexOf('/');
  if (slash <= 0) return `Write it with its vendor, e.g. anthropic/${name} or ollama/${name}.`;
  const near = nearestName(name.slice(0, slash), PREFIXES);
  const guess = near === undefined ? '' : `Did you mean ${near}${name.slice(slash)}? `;
  return `${guess}Before the slash stands the vendor: ${PREFIXES.join(', ')}.`;
}

function unknownPeer(name: string): ProviderError {
  return new ProviderError('no peer of this name may be asked', {
    failure: { kind: 'unknown_model' },
    provider: 'none',
    model: name,
    userText: `No peer that may be asked is called as in "${name}". Peers stand in \`cluster.peers\`, or are found and confirmed: /cluster list.`,
  });
}

export function keyMissing(name: string, vendor: ProviderName): ProviderError {
  const { label, keyVariables } = vendorOf(vendor);
  return new ProviderError('the vendor of this model has no key', {
    failure: { kind: 'unknown_model' },
    provider: vendor,
    model: name,
    userText: `There is no API key for ${label}, which serves "${name}". The owner can set it with \`nanobot config set providers.${vendor}.apiKey <key>\` or in the variable ${keyVariables.join(' or ')}.`,
  });
}

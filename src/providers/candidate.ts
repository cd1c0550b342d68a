// A model that may answer a call, and what its failure means for the person who asked.

import type { ProviderName } from '../kernel/config/config.ts';
import { ProviderError } from '../kernel/message/errors.ts';
import type { LocalSite } from './local-site.ts';
import type { Manners } from './manners.ts';
import type { LLMProvider } from './provider.ts';
import type { ProviderHealth } from './provider-health.ts';
import type { ModelCapabilities } from './rules/model-capabilities.ts';
import { sentenceFor } from './rules/provider-failure.ts';

export type Candidate = {
  /** As configured, with its prefix. */
  readonly name: string;
  /** As the vendor knows it. */
  readonly model: string;
  readonly provider: LLMProvider;
  readonly vendor: { readonly name: ProviderName | 'demo'; readonly label: string };
  readonly local: boolean;
  readonly capabilities: ModelCapabilities;
  readonly contextTokens: number;
  readonly apiBase: string;
  readonly health: ProviderHealth;
  readonly manners: Manners;
  /** The server, where it is a local one. */
  readonly site?: LocalSite;
};

/** Lets everything pass that is neither a provider's failure nor the caller's stop. */
export function asProviderError(
  error: unknown,
  candidate: Candidate,
  signal: AbortSignal,
): ProviderError {
  if (error instanceof ProviderError) return error;
  if (!signal.aborted) throw error;
  return new ProviderError('the call was cancelled', {
    failure: { kind: 'cancelled' },
    provider: candidate.vendor.name,
    model: candidate.name,
  });
}

export function forThePerson(error: ProviderError, candidate: Candidate): ProviderError {
  const { failure } = error;
  const { vendor, name, local, apiBase } = candidate;
  return new ProviderError(error.message, {
    failure,
    provider: vendor.name,
    model: name,
    userText: sentenceFor({
      failure,
      vendor: vendor.label,
      configKey: vendor.name,
      model: name,
      local,
      apiBase,
      detail: error.message,
    }),
  });
}

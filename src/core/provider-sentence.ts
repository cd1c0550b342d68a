// What a person is told when a model call failed for good: what went wrong and what to do, in plain
// words and without secrets.

import type { ProviderFailure } from './errors.ts';

export type FailedCall = {
  readonly failure: ProviderFailure;
  /** The vendor as people know it, e.g. `Anthropic`. */
  readonly vendor: string;
  /** Key of the vendor in the configuration, e.g. `zhipuCoding`. */
  readonly configKey: string;
  /** The model as configured. */
  readonly model: string;
  readonly local: boolean;
  readonly apiBase: string;
  /** The vendor's own words, made safe. */
  readonly detail: string;
};

const STAGES = {
  first_token: 'did not begin to answer in time',
  idle: 'stopped in the middle of its answer',
  whole_call: 'took too long to answer',
};

export function sentenceFor(call: FailedCall): string {
  const { failure, vendor, model } = call;
  switch (failure.kind) {
    case 'auth':
      return authSentence(call);
    case 'unknown_model':
      return `${vendor} does not know the model "${model}". Check the spelling, or choose another with /model.`;
    case 'rate_limited':
      return `${vendor} allows no more requests at the moment. ${waitHint(failure.retryAfterMs)}`;
    case 'server':
      return `${vendor} has a problem on its side at the moment. ${waitHint(failure.retryAfterMs)}`;
    case 'network':
      return call.local
        ? `The local model server at ${call.apiBase} does not answer. Start it, then try again.`
        : `I cannot reach ${vendor} at the moment. Please try again in a few minutes.`;
    case 'redirected':
      return redirectSentence(call, failure.to);
    case 'timeout':
      return `${vendor} ${STAGES[failure.stage]}. Please try again, or choose another model with /model.`;
    case 'context_overflow':
      return `Our conversation is too long for the model "${model}". Start anew with /new.`;
    case 'malformed':
      return `${vendor} sent an answer that cannot be read. Please try again.`;
    case 'rejected':
      return `${vendor} refused the request for "${model}"${quoted(call.detail)} Choose another model with /model, or start anew with /new.`;
    case 'cancelled':
      return 'The answer was stopped.';
  }
}

function authSentence({ failure, vendor, configKey }: FailedCall): string {
  if (failure.kind === 'auth' && failure.reason === 'billing') {
    return `The account at ${vendor} has no credit left. The owner can add credit there, or choose another model with /model.`;
  }
  return `${vendor} refused the API key. The owner can set a new one with \`nanobot config set providers.${configKey}.apiKey <key>\`.`;
}

function redirectSentence({ vendor, apiBase, configKey }: FailedCall, to: string): string {
  return `${vendor} at ${apiBase} redirects requests to ${to}. Redirects are not followed, so nothing was sent there. If that is the right address, the owner can set it as providers.${configKey}.apiBase; otherwise check the server, or choose another model with /model.`;
}

function waitHint(retryAfterMs: number | undefined): string {
  if (retryAfterMs === undefined) return 'Please try again in a few minutes.';
  const minutes = Math.ceil(retryAfterMs / 60_000);
  return minutes <= 1
    ? 'Please try again in a minute.'
    : `It asks to wait ${minutes} minutes. Please try again then, or choose another model with /model.`;
}

const quoted = (detail: string) => (detail === '' ? '.' : `: "${detail}".`);

// Proves a model by one tiny real completion, before onboarding saves it.

import type { Clock } from '../lib/time/clock.ts';
import type { ModelHandle } from './provider.ts';

export type ModelProof = {
  readonly ok: boolean;
  readonly latencyMs: number;
  readonly text: string;
};

/** Enough for models that think before a single word. */
const PROOF_TOKENS = 512;

/** @throws ProviderError, whose `userText` says what to do. */
export async function proveModel(
  handle: ModelHandle,
  signal: AbortSignal,
  clock: Clock,
): Promise<ModelProof> {
  const startedAt = clock.monotonic();
  let text = '';
  const request = {
    system: [],
    messages: [{ role: 'user', text: 'Reply with the single word: ready' }],
    tools: [],
    maxTokens: PROOF_TOKENS,
  } as const;
  for await (const event of handle.stream(request, signal)) {
    if (event.type === 'finished') text = event.text.trim();
  }
  return { ok: text !== '', latencyMs: Math.round(clock.monotonic() - startedAt), text };
}

// One streamed call from its first byte to its last, the same for every vendor: the deadlines, the
// vendor's errors as ours, and that a stream without its end event is no answer.

import { CallDeadline } from './call-deadline.ts';
import type { ModelEvent, ModelRequest } from './provider.ts';
import type { ProviderDeps } from './provider-deps.ts';
import { brokenStream, providerError } from './vendor-error.ts';

/** For the vendors' packages: our own deadlines rule, theirs must never be the shorter one. */
export const LIBRARY_TIMEOUT_MS = 2_000_000_000;

/** What reads the pieces of one vendor's stream. */
export interface StreamReader {
  /** The vendor said that the answer is complete. */
  readonly ended: boolean;
  /** The answer passed our limit of length; the rest is not wanted. */
  readonly overlong: boolean;
  finish(): Iterable<ModelEvent>;
}

export type StreamedCall = {
  readonly request: ModelRequest;
  readonly reader: StreamReader;
  /** The caller's own. */
  readonly signal: AbortSignal;
  /** Sends the request and yields what the reader makes of its pieces. */
  pieces(deadline: CallDeadline): AsyncIterable<ModelEvent>;
};

/** @throws ProviderError */
export async function* streamCall(
  { vendor, apiKey, clock, timeouts }: ProviderDeps,
  { request, reader, signal, pieces }: StreamedCall,
): AsyncGenerator<ModelEvent, void, void> {
  const deadline = new CallDeadline(timeouts, clock, signal);
  const call = { provider: vendor.name, model: request.model };
  try {
    yield* pieces(deadline);
  } catch (error) {
    const isComplete = reader.ended && !signal.aborted;
    if (!isComplete) {
      const nowMs = clock.now();
      throw providerError(error, { ...call, secrets: [apiKey], nowMs, deadline, signal });
    }
  } finally {
    deadline[Symbol.dispose]();
  }
  if (!reader.ended && !reader.overlong) throw brokenStream(call);
  yield* reader.finish();
}

// One try of one model, watched by the meter: asked before it, told how it ended, also where nobody
// waits for its end any more.

import { ProviderError } from '../kernel/message/errors.ts';
import type { CallMeter, LLMProvider, ModelEvent, ModelRequest, TryEnd } from './provider.ts';

export type MeteredModel = {
  readonly provider: LLMProvider;
  /** With its prefix. */
  readonly name: string;
  readonly meter: CallMeter | undefined;
  /** For a place at a local server; undefined: none was needed. */
  readonly waitedMs: number | undefined;
};

/** @throws what the meter throws, before anything is asked; then what the provider throws */
export async function* meteredStream(
  { provider, name, meter, waitedMs }: MeteredModel,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent, void, void> {
  if (meter === undefined) return yield* provider.stream(request, signal);
  const attempt = await meter.begin(name, signal, {
    ...(provider.base === undefined ? {} : { base: provider.base }),
    ...(waitedMs === undefined ? {} : { waitedMs }),
  });
  let answerChars = 0;
  let end: TryEnd = { kind: 'failed', failure: { kind: 'cancelled' }, answerChars };
  try {
    const bounded = { ...request, maxTokens: Math.min(request.maxTokens, attempt.maxTokens) };
    for await (const event of provider.stream(bounded, signal)) {
      if ('delta' in event) answerChars += event.delta.length;
      end =
        event.type === 'finished'
          ? finished(event)
          : { kind: 'failed', failure: { kind: 'cancelled' }, answerChars };
      // Before it is passed on: who gets the last event may not come back for more.
      if (end.kind === 'finished') attempt.end(end);
      yield event;
    }
  } catch (error) {
    if (error instanceof ProviderError)
      end = { kind: 'failed', failure: error.failure, answerChars };
    throw error;
  } finally {
    if (end.kind === 'failed') attempt.end(end);
  }
}

function finished(event: Extract<ModelEvent, { type: 'finished' }>): TryEnd {
  const { text, thinking, toolCalls, usage } = event;
  const parts = [
    text,
    ...thinking.map((block) => block.text),
    ...toolCalls.map((call) => call.name + call.arguments),
  ];
  const answerChars = parts.reduce((sum, part) => sum + part.length, 0);
  return { kind: 'finished', answerChars, ...(usage === undefined ? {} : { usage }) };
}

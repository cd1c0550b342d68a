// Gives each model the form in which it can be asked: who cannot call tools, or must be spoken to by
// turns, is asked in text; of a model on one's own machine the text is read, since it may print calls,
// and what its server refuses is not asked of it again.

import type { Candidate } from './candidate.ts';
import type { LLMProvider, ModelEvent, ModelRequest } from './provider.ts';

type Speaker = Pick<
  Candidate,
  'name' | 'local' | 'capabilities' | 'contextTokens' | 'manners' | 'vendor'
>;

/** `inner` is asked once for each try and each correction. */
export function speaking(inner: LLMProvider, speaker: Speaker): LLMProvider {
  const { local, vendor, manners } = speaker;
  if (!local && takesAll(speaker)) return inner;
  return {
    name: inner.name,
    async *stream(request, signal) {
      // Each refusal is learnt once, so this ends.
      for (let isBegun = false; ; ) {
        try {
          for await (const event of asked(inner, speaker, request, signal)) {
            isBegun = true;
            yield event;
          }
          return;
        } catch (error) {
          if (isBegun || signal.aborted || !manners.learn(error)) throw error;
        }
        const reason = `${vendor.label} did not take the question in this form`;
        yield { type: 'retrying', reason, delayMs: 0 };
      }
    },
  };
}

const takesAll = ({ capabilities: { toolCalling, strictAlternation } }: Speaker): boolean =>
  toolCalling === 'native' && !strictAlternation;

async function* asked(
  inner: LLMProvider,
  known: Speaker,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent, void, void> {
  const speaker = { ...known, capabilities: known.manners.of(known.capabilities) };
  if (takesAll(speaker) && request.tools.length === 0) return yield* inner.stream(request, signal);
  const { withTextTools } = await import('./text-tools/text-tools.ts');
  yield* withTextTools(inner, speaker).stream(request, signal);
}

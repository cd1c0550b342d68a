// Gives each model the form in which it can be asked: who cannot call tools, or must be spoken to by
// turns, is asked in text; of a model on one's own machine the text is read, since it may print calls.

import type { Candidate } from './candidate.ts';
import type { LLMProvider } from './provider.ts';

type Speaker = Pick<Candidate, 'name' | 'local' | 'capabilities' | 'contextTokens'>;

/** `inner` is asked once for each try and each correction. */
export function speaking(inner: LLMProvider, speaker: Speaker): LLMProvider {
  const { toolCalling, strictAlternation } = speaker.capabilities;
  const takesAll = toolCalling === 'native' && !strictAlternation;
  if (takesAll && !speaker.local) return inner;
  return {
    name: inner.name,
    async *stream(request, signal) {
      if (takesAll && request.tools.length === 0) return yield* inner.stream(request, signal);
      const { withTextTools } = await import('./text-tools/text-tools.ts');
      yield* withTextTools(inner, speaker).stream(request, signal);
    },
  };
}

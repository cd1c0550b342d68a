// What a local server refused of a model, whatever its name promised: it is then asked in the way that
// server takes. Learnt anew by each registry; a configured capability spares the first refusal.

import { ProviderError } from '../core/errors.ts';
import type { ModelCapabilities } from '../core/model-capabilities.ts';

/** As Ollama, vLLM and llama.cpp put it. */
const NO_TOOLS =
  /does not support (?:tools|tool|function)|requires --(?:enable-auto-tool-choice|jinja)|tool[\w -]*(?:is|are) not supported/i;
/** As the chat templates of models put it, which servers hand on. */
const BY_TURNS = /roles? must alternate|only user(?:,| and) assistant(?: and system)? roles/i;

export class Manners {
  #refusesTools = false;
  #wantsTurns = false;

  /** What is known of the model, less what was refused. */
  of(known: ModelCapabilities): ModelCapabilities {
    const isText = this.#refusesTools && known.toolCalling === 'native';
    return {
      ...known,
      ...(isText ? { toolCalling: 'text' } : {}),
      ...(this.#wantsTurns ? { strictAlternation: true } : {}),
    };
  }

  /** True where it was such a refusal, and news. */
  learn(error: unknown): boolean {
    if (!(error instanceof ProviderError)) return false;
    const isAboutTools = !this.#refusesTools && NO_TOOLS.test(error.message);
    const isAboutTurns = !this.#wantsTurns && BY_TURNS.test(error.message);
    this.#refusesTools ||= isAboutTools;
    this.#wantsTurns ||= isAboutTurns;
    return isAboutTools || isAboutTurns;
  }
}

// What a local server refused of a model, whatever its name promised: it is then asked in the way that
// server takes. Learnt anew by each registry; a configured capability spares the first refusal.

import { ProviderError } from '../kernel/message/errors.ts';
import type { ModelCapabilities } from './rules/model-capabilities.ts';

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

// Version numbers inside model names, for rules that changed with a model's generation.

/** The number the pattern's first group finds; 0 where there is none. `5.4`, `5`. */
export function modelVersion(model: string, pattern: RegExp): number {
  return Number(pattern.exec(model.toLowerCase())?.[1] ?? 0);
}

export type ClaudeTraits = {
  /** How it is asked to think; the newest decide on their own budget. */
  readonly thinking: 'budget' | 'adaptive';
  /** Takes `temperature`. */
  readonly sampling: boolean;
};

/** `claude-opus-4-7` and `claude-sonnet-5`; the older `claude-3-5-sonnet` puts the number first. */
const CLAUDE = /claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2})(?!\d))?(?!\d)/;

/** Adaptive thinking from 4.6, no sampling from 4.7 (Anthropic's migration guides). */
export function claudeTraits(model: string): ClaudeTraits {
  const match = CLAUDE.exec(model.toLowerCase());
  const version = Number(match?.[1] ?? 0) + Number(match?.[2] ?? 0) / 100;
  return {
    thinking: version >= 4.06 ? 'adaptive' : 'budget',
    sampling: version < 4.07 && !/mythos|fable/.test(model),
  };
}

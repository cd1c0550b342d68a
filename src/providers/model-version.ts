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

// The calls of models that share the work of a turn and whose outcome stands in no entry of its own: a
// router's advice, a digest, a check. The end of the turn records them, so that they are counted.

import type { SharedCall, TokenUsage } from '../kernel/message/transcript.ts';

export class SharedCalls {
  #calls: readonly SharedCall[] = [];

  add(call: SharedCall): void {
    this.#calls = [...this.#calls, call];
  }

  /** An entry has what these calls took: the newest of the model, as many as its usage covers. */
  recorded(model: string, usage: TokenUsage | undefined): void {
    const total = tokensOf(usage);
    const covered = new Set<SharedCall>();
    let tokens = 0;
    for (const call of this.#calls.filter((each) => each.model === model).toReversed()) {
      const isWhole = covered.size > 0 && tokens >= total;
      if (isWhole || tokens + tokensOf(call.usage) > total) break;
      covered.add(call);
      tokens += tokensOf(call.usage);
    }
    this.#calls = this.#calls.filter((call) => !covered.has(call));
  }

  get unrecorded(): readonly SharedCall[] {
    return this.#calls;
  }
}

const tokensOf = (usage: TokenUsage | undefined) =>
  usage === undefined ? 0 : usage.inputTokens + usage.outputTokens;

// The calls of models that share the work of a turn and whose outcome stands in no entry of its own: a
// router's advice, a digest, a check. The end of the turn records them, so that they are counted.

import type { SharedCall, TokenUsage } from '../core/transcript.ts';

export class SharedCalls {
  #calls: readonly SharedCall[] = [];

  add(call: SharedCall): void {
    this.#calls = [...this.#calls, call];
  }

  /** An entry has what these calls took: the newest of the model, as many as the usage covers. */
  recorded(model: string, usage: TokenUsage | undefined): void {
    let left = tokensOf(usage);
    const isCovered = (call: SharedCall, index: number) => {
      const own = tokensOf(call.usage);
      if (call.model !== model || own > left || (left === 0 && index > 0)) return false;
      left -= own;
      return true;
    };
    this.#calls = this.#calls
      .toReversed()
      .filter((call, index) => !isCovered(call, index))
      .toReversed();
  }

  get unrecorded(): readonly SharedCall[] {
    return this.#calls;
  }
}

const tokensOf = (usage: TokenUsage | undefined) =>
  usage === undefined ? 0 : usage.inputTokens + usage.outputTokens;

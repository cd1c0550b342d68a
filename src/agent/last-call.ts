// The newest model call of a turn and whether one had to wait, for what is decided from its size.

export type CalledModel = {
  /** As configured, with its prefix. */
  readonly name: string;
  readonly contextTokens: number;
};

export class LastCall {
  #call: { readonly handle: CalledModel; readonly tokens: number } | undefined;

  /** `tokens`: what it was expected to take. */
  note(handle: CalledModel, tokens: number): void {
    this.#call = { handle, tokens };
  }

  /** It waited for a summary: not again in this turn. */
  hasWaited = false;

  get call() {
    return this.#call;
  }
}

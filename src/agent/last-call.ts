// The newest model call of a turn, for what is decided from its size behind the turn.

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

  get call() {
    return this.#call;
  }
}

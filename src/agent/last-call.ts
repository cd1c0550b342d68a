// The newest model call of a turn and whether one had to wait, for what is decided from its size.

export type CalledModel = {
  /** As configured, with its prefix. */
  readonly name: string;
  readonly contextTokens: number;
};

export type NotedCall = {
  readonly handle: CalledModel;
  /** What it was expected to take. */
  readonly tokens: number;
  /** Of these, prompt and tools. */
  readonly fixedTokens: number;
};

export class LastCall {
  #call: NotedCall | undefined;

  note(call: NotedCall): void {
    this.#call = call;
  }

  /** How far tools and prompt give way to the last exchange, for the rest of the turn. */
  squeeze = 0;

  /** It waited for a summary: not again in this turn. */
  hasWaited = false;

  get call(): NotedCall | undefined {
    return this.#call;
  }
}

// Shows a running turn in the chat it began in, as long as its answer will be given there. Once the
// conversation has moved, what stands there is taken away and nothing more is shown.

import type { LiveTopic } from '../bus/bus.ts';
import type { AgentEvent, TurnOutcome } from '../core/event.ts';
import type { TurnView } from './turn-view.ts';

export type TurnShowDeps = {
  readonly live: LiveTopic;
  /** Whether the answer will be given where the turn began. */
  isHere(): Promise<boolean>;
};

export class TurnShow {
  readonly #view: TurnView;
  readonly #deps: TurnShowDeps;
  #hasMoved = false;

  constructor(view: TurnView, deps: TurnShowDeps) {
    this.#view = view;
    this.#deps = deps;
  }

  async show(event: AgentEvent): Promise<void> {
    const picture = this.#view.apply(event);
    if (await this.#isHere()) this.#deps.live.publish(picture);
  }

  async end(outcome: TurnOutcome | undefined): Promise<void> {
    if (await this.#isHere()) this.#deps.live.publish(this.#view.ended(outcome));
  }

  async #isHere(): Promise<boolean> {
    if (this.#hasMoved || (await this.#deps.isHere())) return !this.#hasMoved;
    this.#hasMoved = true;
    this.#deps.live.publish(this.#view.moved());
    return false;
  }
}

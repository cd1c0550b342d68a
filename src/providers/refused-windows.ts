// Windows that a local server named when it refused a question as too long, though it had spoken of larger
// ones. They count instead of what it says, until it says something else, or an hour later.

import type { Clock } from '../lib/time/clock.ts';
import type { ModelFacts } from './model-facts.ts';

type Refused = {
  readonly size: number;
  /** By the server itself, when it was asked. */
  readonly said: number | undefined;
  readonly until: number;
};

const LASTS_MS = 3_600_000;

export class RefusedWindows {
  readonly #refused = new Map<string, Refused>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `known`: what it was taken for. Sizes in tokens; a window only gets smaller by this. */
  refused(model: string, size: number, known: number | undefined): void {
    if (known !== undefined && size >= known) return;
    const before = this.#refused.get(model);
    const said = before === undefined ? known : before.said;
    this.#refused.set(model, { size, said, until: this.#clock.monotonic() + LASTS_MS });
  }

  /** What the server says of a model now, as far as it is to be believed. */
  heard(model: string, facts: ModelFacts): ModelFacts {
    const refused = this.#refused.get(model);
    const isOver = refused !== undefined && refused.until <= this.#clock.monotonic();
    if (isOver || refused?.said !== facts.contextTokens) this.#refused.delete(model);
    return this.bounded(model, facts);
  }

  bounded<Facts extends ModelFacts | undefined>(model: string, facts: Facts): Facts | ModelFacts {
    const refused = this.#refused.get(model);
    return refused === undefined ? facts : { ...facts, contextTokens: refused.size };
  }

  forget(model: string): void {
    this.#refused.delete(model);
  }
}

// What a person is told while something else than the main model works for their turn, on its way among
// the events of the turn.

import type { AgentEvent } from '../core/event.ts';

export class TurnNotices {
  #told: string[] = [];
  readonly #kept = new Set<string>();
  #news = Promise.withResolvers<void>();

  /** Said by whatever runs now, or next. */
  tell(text: string): void {
    this.#told.push(text);
    this.#news.resolve();
  }

  /** Stands below the answer: a notice is gone with the next words. */
  keep(text: string): void {
    this.#kept.add(text);
  }

  /** A notice that stands below the answer as well. */
  lasting(text: string): AgentEvent {
    this.keep(text);
    return { type: 'notice', text };
  }

  get kept(): readonly string[] {
    return [...this.#kept];
  }

  /** Yields what is told while `work` goes on, as it comes. @throws as `work` does */
  async *during<Result>(work: Promise<Result>): AsyncGenerator<AgentEvent, Result, void> {
    let isOver = false;
    const over = work.then(
      () => {
        isOver = true;
      },
      () => {
        isOver = true;
      },
    );
    while (true) {
      await Promise.race([over, this.#news.promise]);
      this.#news = Promise.withResolvers<void>();
      for (const text of this.#told.splice(0)) yield { type: 'notice', text };
      if (isOver && this.#told.length === 0) return work;
    }
  }
}

// Finds out beside other work who sent the messages of a turn, and tells the agent with each message.

import type { TurnMessage } from '../agent/agent.ts';
import type { QueuedMessage } from '../bus/bus.ts';
import { narrowed, type Rights } from '../core/rights.ts';
import type { Origin, Origins } from './origins.ts';

export class BatchOrigins {
  readonly #origins: Origins;
  readonly #found = new Map<number, Promise<Origin>>();

  constructor(origins: Origins) {
    this.#origins = origins;
  }

  /** Begins to look; a failure shows where the answer is needed. */
  look(messages: readonly QueuedMessage[]): void {
    for (const queued of messages) this.#of(queued).catch(() => undefined);
  }

  async told(queued: QueuedMessage): Promise<TurnMessage> {
    const { rights, isForeign } = await this.#of(queued);
    return { ...queued, rights, isForeign };
  }

  #of(queued: QueuedMessage): Promise<Origin> {
    const known = this.#found.get(queued.seq);
    if (known !== undefined) return known;
    const origin = this.#origins(queued.message);
    this.#found.set(queued.seq, origin);
    return origin;
  }
}

/** A turn may do what everybody it answers may. */
export function narrowestOf(messages: readonly [TurnMessage, ...TurnMessage[]]): Rights {
  const [first, ...rest] = messages;
  return rest.reduce((rights, message) => narrowed(rights, message.rights), first.rights);
}

// The messages one turn answers. Followers join in order; a command ends the batch, because what
// comes behind it must wait until it has had its effect.

import type { QueuedMessage, Turn } from '../bus/bus.ts';
import { parseCommand } from '../core/command.ts';
import { findCommand } from './commands.ts';

export class Batch {
  readonly #turn: Turn;
  readonly #taken: [QueuedMessage, ...QueuedMessage[]];
  #held: QueuedMessage[] = [];

  constructor(turn: Turn) {
    this.#turn = turn;
    const [first, ...rest] = turn.messages;
    this.#taken = [first];
    this.#add(rest);
  }

  /** Messages the turn answers. */
  get messages(): readonly [QueuedMessage, ...QueuedMessage[]] {
    return this.#taken;
  }

  /** The batch can take no more: a command waits behind it. */
  get isClosed(): boolean {
    return this.#held.length > 0;
  }

  /** Takes what has arrived since; returns what may join the turn. */
  async join(): Promise<readonly QueuedMessage[]> {
    if (this.isClosed) return [];
    return this.#add(await this.#turn.join());
  }

  #add(arrived: readonly QueuedMessage[]): readonly QueuedMessage[] {
    const end = arrived.findIndex((queued) => isCommand(queued));
    const joining = end === -1 ? arrived : arrived.slice(0, end);
    this.#taken.push(...joining);
    this.#held.push(...arrived.slice(joining.length));
    return joining;
  }
}

function isCommand(queued: QueuedMessage): boolean {
  return findCommand(parseCommand(queued.message.text)) !== undefined;
}

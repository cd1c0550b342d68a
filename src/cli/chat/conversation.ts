// CONTRACT of a conversation from this terminal: with a gateway in this process or one elsewhere on
// this machine.

import type { DoorEvent } from '../../channels/door.ts';

export interface Conversation {
  /** Resolves when the message is durable. `clientId` makes a repeat harmless. */
  submit(clientId: string, text: string): Promise<void>;
  /** Everything said in the chat after `afterSeq`, then what comes, until aborted. */
  events(afterSeq: number, signal: AbortSignal): AsyncIterable<DoorEvent>;
  /** Stops what runs in the chat. */
  stop(): Promise<void>;
}

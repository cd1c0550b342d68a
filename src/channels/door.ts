// CONTRACT of a door: a chat surface of our own (web page, terminal) on the same bus as any
// platform. It keeps its own durable log of what was said, so a page that lost its connection
// resumes without loss.

import type { LiveUpdate } from '../core/event.ts';
import type { MessageId } from '../core/ids.ts';

export type DoorEvent =
  /** `seq` counts up within a chat; a reader resumes behind the last one it saw. */
  | {
      readonly type: 'said';
      readonly seq: number;
      readonly id: MessageId;
      readonly from: 'person' | 'agent';
      /** Plain text of a person, Markdown of the agent. */
      readonly text: string;
      readonly at: number;
    }
  /** Not durable; the newest picture is sent again to whoever connects while the turn runs. */
  | { readonly type: 'live'; readonly update: LiveUpdate };

export type DoorChat = {
  readonly chat: string;
  /** First words of the first message. */
  readonly title: string;
  readonly updatedAt: number;
};

export interface Door {
  /**
   * A person said something. `clientId` is chosen by the page and makes a repeat harmless. Resolves
   * when the message is durable. @throws BusFullError
   */
  submit(message: {
    readonly chat: string;
    readonly clientId: string;
    readonly text: string;
  }): Promise<'accepted' | 'duplicate'>;
  /** Everything said after `afterSeq`, then what comes, until the signal aborts. */
  events(chat: string, afterSeq: number, signal: AbortSignal): AsyncIterable<DoorEvent>;
  /** Newest first. */
  chats(limit: number): Promise<readonly DoorChat[]>;
}

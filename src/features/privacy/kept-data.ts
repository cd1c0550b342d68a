// CONTRACT of all that is kept of people, wherever it lies: found, told, handed out and forgotten as one.

import type { SessionKey } from '../../kernel/message/ids.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import type { TurnPerson } from '../../kernel/message/notes.ts';

/** A turn in the chat of a message, as far as it says whose it is. */
export type Asking = {
  readonly message: InboundMessage;
  readonly session: SessionKey;
  readonly person: TurnPerson;
};

/** What a wish to forget reaches, kept until it is answered. */
export type Reach = {
  readonly words: string;
  readonly notes: string;
  /** Session keys without topics. */
  readonly chats: readonly string[];
};

export type KeptPlace = { readonly where: string; readonly text: string };

export type ForgetReport = {
  readonly noteLines: number;
  readonly entries: number;
  /** Of messages in the queues and the logs of our own doors. */
  readonly texts: number;
};

export interface KeptData {
  reach(asking: Asking, words: string): Promise<Reach>;
  /** At most `limit` places are told; all are counted. */
  find(
    reach: Reach,
    limit: number,
  ): Promise<{ readonly places: readonly KeptPlace[]; readonly count: number }>;
  /** May be repeated. Nothing of it is left in any file when this resolves. */
  forget(reach: Reach): Promise<ForgetReport>;
  /** Leaves nothing of a wish that was deleted in the file of the store. */
  scrub(): Promise<void>;
  /** In words. */
  overview(asking: Asking): Promise<string>;
  /** The facts and files in this folder of the workspace, in words. */
  notesOf(folder: string): Promise<string>;
  /** Sends it; the words for the person. */
  handOut(asking: Asking, format: 'md' | 'jsonl'): Promise<string>;
}

// CONTRACT of what people can see of their conversations, and bring back.

import type { Revisions } from '../../agent/revise.ts';
import type { ContextReport } from '../../agent/rules/context-fit.ts';
import type { SessionKey } from '../message/ids.ts';
import type { InboundMessage } from '../message/message.ts';

export type ConversationInfo = {
  readonly key: SessionKey;
  readonly messages: number;
  readonly bytes: number;
  /** Epoch milliseconds. */
  readonly updatedAt: number;
};

export interface ConversationDesk extends Pick<Revisions, 'restorable' | 'restore' | 'outcome'> {
  /** What the next call of this conversation would take, for whoever asks. */
  context(message: InboundMessage): Promise<ContextReport>;
  /** Newest first; of those that are named, or the newest of all. */
  sessions(
    which: readonly SessionKey[] | { readonly newest: number },
  ): Promise<readonly ConversationInfo[]>;
}

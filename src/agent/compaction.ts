// CONTRACT of summing up conversations: what is asked for, and what came of it.

import type { Payer } from '../features/spending/rules/budget-limits.ts';
import type { SessionKey } from '../kernel/message/ids.ts';
import type { CompactionPolicy, ConversationSize } from './rules/compaction.ts';

export type CompactionRequest = {
  readonly session: SessionKey;
  /** Whoever wrote last. */
  readonly payer: Payer;
  /** The model of the conversation. */
  readonly model: string;
  readonly policy: CompactionPolicy;
  readonly size: ConversationSize;
  /** Of the newest turns, to be left as they are; undefined: as the policy says. */
  readonly keepTokens?: number;
};

export type CompactionReport =
  | {
      readonly kind: 'compacted';
      /** Messages that a summary stands for now. */
      readonly messages: number;
      /** Of the conversation, estimated. */
      readonly tokensBefore: number;
      readonly tokensAfter: number;
    }
  | { readonly kind: 'nothing'; readonly tokens: number }
  /** `text`: for the person, where there is more to say. */
  | { readonly kind: 'failed'; readonly text?: string };

export interface Compactor extends AsyncDisposable {
  /** Soon, unless it failed lately; nobody waits for it. */
  inBackground(request: CompactionRequest): void;
  /** Joins one that is under way. @throws the signal's reason */
  now(request: CompactionRequest, signal: AbortSignal): Promise<CompactionReport>;
  /** It took too long for whoever waited: not tried again for a while. */
  rest(session: SessionKey): void;
  /** Whether it failed or took too long lately. */
  isResting(session: SessionKey): boolean;
}

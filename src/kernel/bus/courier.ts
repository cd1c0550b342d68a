// CONTRACT of what brings messages out: the bus hands them over, one try at a time, and is told how each
// ended. Part of bus.ts.

import type { AccountName } from '../message/account.ts';
import type { SetAside, UnknownPolicy } from '../message/delivery.ts';
import type { NativeId } from '../message/ids.ts';
import type { OutboundMessage } from '../message/message.ts';

export type Receipt = {
  /** Ids of what now stands in the chat, in order. */
  readonly nativeIds: readonly NativeId[];
};

export type SendContext = {
  readonly signal: AbortSignal;
  /** 1 on the first try. */
  readonly attempt: number;
  /** The moment the text is made for, epoch milliseconds: the same again once a part has arrived. */
  readonly textAt: number;
  /** It comes so late that it should show what it answers. */
  readonly isLate?: true;
  /** Parts that an earlier try surely delivered; never sent again. */
  readonly sentParts: readonly NativeId[];
  /** An earlier try may or may not have arrived; a channel that sends again says so in the text. */
  readonly repeatsUnknown: boolean;
  /** The platform message that shows this turn's live draft and should become the final text. */
  readonly draft?: NativeId;
  /**
   * Durably records that a request is about to be written that may not be repeated unseen. To be called
   * right before each where the channel `announcesRequests`; until then the try is surely not in doubt.
   * @throws DeliveryError not_sent where the message may not be sent any more
   */
  requestBegins(): Promise<void>;
  /** Durably records that the next part stands in the chat; the last one along with the send's end. */
  partSent(id: NativeId, isLast?: boolean): Promise<void>;
};

/** Whether messages can be sent now, where sending needs a connection that comes and goes. */
export interface Readiness {
  readonly isReady: boolean;
  /** Calls back each time it becomes ready, until disposed. */
  onReady(call: () => void): Disposable;
}

/** Carries one account's outbound messages, in order per chat. */
export interface Courier {
  readonly account: AccountName;
  readonly onUnknown: UnknownPolicy;
  /** How long a message is worth delivering, milliseconds. */
  readonly lifetimeMs: number;
  /** While it is not ready messages wait without a try. Absent: a try always makes sense. */
  readonly readiness?: Readiness;
  /** It calls `requestBegins`; otherwise a try may have arrived as soon as it is claimed. */
  readonly announcesRequests?: true;
  /** @throws DeliveryError */
  send(message: OutboundMessage, context: SendContext): Promise<Receipt>;
  /** Whether the platform has this message; undefined where it cannot tell yet. */
  reconcile?(
    message: OutboundMessage,
    signal: AbortSignal,
  ): Promise<Receipt | 'absent' | undefined>;
  /**
   * Told in the moment in which a message is given up: what it queues at once is stored in the same
   * transaction.
   */
  setAside?(message: OutboundMessage, aside: SetAside): void;
}

// Takes the buttons away from questions that are closed, however they were. Best effort: a press of
// one that stayed is told that it comes too late.

import type { MessageBus } from '../bus/bus.ts';
import type { Channel } from '../channels/channel.ts';
import { DeliveryError } from '../core/errors.ts';
import type { ChannelName, MessageId } from '../core/ids.ts';
import type { Logger } from '../lib/logger.ts';

export type SpentButtonsDeps = {
  readonly bus: Pick<MessageBus, 'outbound'>;
  readonly log: Logger;
  channel(name: ChannelName): Channel | undefined;
};

const DEADLINE_MS = 15_000;

/** Begins to take away what can be pressed below the text. */
export type SpendButtons = (text: MessageId) => void;

export function createSpentButtons({ bus, log, channel }: SpentButtonsDeps): SpendButtons {
  async function close(text: MessageId): Promise<void> {
    const sent = await bus.outbound(text);
    const part = sent?.parts.at(-1);
    if (sent === undefined || part === undefined) return;
    const signal = AbortSignal.timeout(DEADLINE_MS);
    await channel(sent.chat.channel)?.closeChoices?.(sent.chat, part, signal);
  }

  return (text) => {
    close(text).catch((error: unknown) => {
      const isDelivery = error instanceof DeliveryError;
      log[isDelivery ? 'info' : 'error']('buttons not taken away', { text, error });
    });
  };
}

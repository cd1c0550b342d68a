// Takes the buttons away from questions that are closed, however they were. Best effort: a press of
// one that stayed is told that it comes too late.

import type { MessageBus } from '../bus/bus.ts';
import type { Channel } from '../channels/channel.ts';
import { type AccountName, accountName } from '../core/account.ts';
import { DeliveryError } from '../core/errors.ts';
import type { MessageId } from '../core/ids.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';

export type SpentButtonsDeps = {
  readonly bus: Pick<MessageBus, 'outbound'>;
  readonly clock: Clock;
  readonly log: Logger;
  channel(name: AccountName): Channel | undefined;
};

const DEADLINE_MS = 15_000;
const LOOKS = 5;
const LOOK_MS = 300;

/** Begins to take away what can be pressed below the text, and to say there what came of it. */
export type SpendButtons = (text: MessageId, outcome?: string) => void;

export function createSpentButtons({ bus, clock, log, channel }: SpentButtonsDeps): SpendButtons {
  /** Somebody may answer before it is noted what the platform calls the question. */
  async function sentText(text: MessageId) {
    const signal = AbortSignal.timeout(DEADLINE_MS);
    for (let left = LOOKS; ; left -= 1) {
      const sent = await bus.outbound(text);
      if (sent === undefined || sent.parts.length > 0 || left === 0) return sent;
      await clock.sleep(LOOK_MS, signal);
    }
  }

  async function close(text: MessageId, outcome: string | undefined): Promise<void> {
    const sent = await sentText(text);
    const part = sent?.parts.at(-1);
    if (sent === undefined || part === undefined) return;
    const signal = AbortSignal.timeout(DEADLINE_MS);
    // Of a text in several parts the last alone would say all of it.
    const isWhole = sent.parts.length === 1 && outcome !== undefined;
    const now = isWhole ? `${sent.markdown}\n\n${outcome}` : undefined;
    await channel(accountName(sent.chat))?.closeChoices?.(sent.chat, part, signal, now);
  }

  return (text, outcome) => {
    close(text, outcome).catch((error: unknown) => {
      const isDelivery = error instanceof DeliveryError;
      log[isDelivery ? 'info' : 'error']('buttons not taken away', { text, error });
    });
  };
}

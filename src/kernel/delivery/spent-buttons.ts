// Takes the buttons away from questions that are closed, however they were. What is to be taken away is
// on disk until it was, so that a kill leaves none for good; a press of one that stayed meanwhile is told
// that it comes too late.

import type { Channel } from '../../channels/channel.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { MessageBus, RowWrite } from '../bus/bus.ts';
import { type AccountName, accountName } from '../message/account.ts';
import { DeliveryError } from '../message/errors.ts';
import { type MessageId, messageId } from '../message/ids.ts';
import type { OpenRows } from '../rows.ts';

export type SpentButtonsDeps = {
  readonly rows: OpenRows;
  readonly bus: Pick<MessageBus, 'outbound'>;
  readonly clock: Clock;
  readonly log: Logger;
  channel(name: AccountName): Channel | undefined;
};

const DEADLINE_MS = 15_000;
const LOOKS = 5;
const LOOK_MS = 300;
/** At the start a door may not be open yet. */
const TRY_AGAIN_MS = 30_000;
/** Most platforms let nobody change a text after that. */
const KEEP_MS = 48 * 3_600_000;

/** Takes away what can be pressed below the text, and says there what came of it. */
export type SpendButtons = (
  text: MessageId,
  outcome?: string,
) => {
  /** To be stored with what closes the question. */
  readonly rows: readonly RowWrite[];
  /** To be called when they are stored. */
  begin(): void;
};

export type SpentButtons = ReturnType<typeof createSpentButtons>;

export function createSpentButtons(deps: SpentButtonsDeps) {
  const { bus, clock, log, channel } = deps;
  const left = deps.rows<{ readonly outcome: string }>({
    ...{ scope: 'spent-buttons', prefix: '' },
    read: (outcome) => ({ outcome }),
    write: ({ outcome }) => outcome,
  });

  /** Somebody may answer before it is noted what the platform calls the question. */
  async function sentText(text: MessageId) {
    const signal = AbortSignal.timeout(DEADLINE_MS);
    for (let looks = LOOKS; ; looks -= 1) {
      const sent = await bus.outbound(text);
      if (sent === undefined || sent.parts.length > 0 || looks === 0) return sent;
      await clock.sleep(LOOK_MS, signal);
    }
  }

  async function close(text: MessageId, outcome: string): Promise<void> {
    const sent = await sentText(text);
    const part = sent?.parts.at(-1);
    if (sent !== undefined && part !== undefined) {
      const signal = AbortSignal.timeout(DEADLINE_MS);
      // Of a text in several parts the last alone would say all of it.
      const isWhole = sent.parts.length === 1 && outcome !== '';
      const now = isWhole ? `${sent.markdown}\n\n${outcome}` : undefined;
      await channel(accountName(sent.chat))?.closeChoices?.(sent.chat, part, signal, now);
    }
    await left.change(text, () => 'remove');
  }

  function failed(text: string, error: unknown): void {
    const isDelivery = error instanceof DeliveryError;
    log[isDelivery ? 'info' : 'error']('buttons not taken away', { text, error });
  }

  async function closeLeft(): Promise<number> {
    await left.expire(clock.now() - KEEP_MS);
    for (const [text, { outcome }] of await left.entries()) {
      await close(messageId(text), outcome).catch((error: unknown) => failed(text, error));
    }
    return (await left.list()).length;
  }

  return {
    spend(text: MessageId, outcome = ''): ReturnType<SpendButtons> {
      return {
        rows: [left.write(text, { outcome })],
        begin: () => close(text, outcome).catch((error: unknown) => failed(text, error)),
      };
    },
    /** What a process that is gone had not come to; ends when there is nothing left of it. */
    async run(signal: AbortSignal): Promise<void> {
      try {
        while ((await closeLeft()) > 0) await clock.sleep(TRY_AGAIN_MS, signal);
      } catch (error) {
        if (!signal.aborted) failed('', error);
      }
    },
  };
}

// Builds where the agent's plans are kept and how they are shown.

import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { ChannelDirectory } from '../../kernel/channels.ts';
import { accountName } from '../../kernel/message/account.ts';
import { DeliveryError } from '../../kernel/message/errors.ts';
import type { MessageId } from '../../kernel/message/ids.ts';
import type { OpenRows } from '../../kernel/rows.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createPlans, type PlanDesk } from './plans.ts';

export type PlanParts = {
  readonly rows: OpenRows;
  readonly bus: Pick<MessageBus, 'send' | 'outbound' | 'trace'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly channels: Pick<ChannelDirectory, 'get'>;
};

const EDIT_DEADLINE_MS = 15_000;
/** Of a text that has yet to get its place in the chat, or got it between the two looks. */
const ON_ITS_WAY = ['queued', 'sending', 'sent'];

export function buildPlans({ rows, bus, clock, log, channels }: PlanParts): PlanDesk {
  async function edit(text: MessageId, markdown: string) {
    const sent = await bus.outbound(text);
    if (sent === undefined) return 'cannot';
    const editing = channels.get(accountName(sent.chat))?.editing;
    if (editing === undefined) return 'cannot';
    const [part] = sent.parts;
    if (part === undefined) {
      const { state } = (await bus.trace(text)) ?? {};
      return state !== undefined && ON_ITS_WAY.includes(state) ? 'later' : 'cannot';
    }
    try {
      await editing.edit(sent.chat, part, markdown, AbortSignal.timeout(EDIT_DEADLINE_MS));
      return 'done';
    } catch (error) {
      if (!(error instanceof DeliveryError)) throw error;
      log.info('checklist not changed in place', { text, error });
      return 'cannot';
    }
  }

  return createPlans({
    ...{ rows, bus, clock, edit },
    isDoor: (chat) => channels.get(accountName(chat)) !== undefined,
  });
}

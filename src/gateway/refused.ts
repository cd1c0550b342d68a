// What becomes of a message that the gate lets nobody answer: a record of why, and a line in the log.

import type { InboundMessage } from '../core/message.ts';
import type { Logger } from '../lib/logger.ts';
import type { Gated } from './group-intake.ts';

export function refused(message: InboundMessage, reason: string, log: Logger): Gated {
  return {
    entry: { kind: 'record', message, gate: reason },
    async afterwards() {
      const fields = { channel: message.chat.channel, messageId: message.id, reason };
      // Talk in groups that are not ours may be a lot.
      if (message.addressing === 'ambient') log.debug('message refused', fields);
      else log.info('message refused', fields);
    },
  };
}

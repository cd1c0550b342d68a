// Asks the account of a message whether it is answered now, before anything is paid for: what a limit
// holds back waits in the queue, and what it refuses ends with a note in the trace.

import type { Channel } from '../../channels/channel.ts';
import type { Logger } from '../../lib/logger.ts';
import { TurnDeferred } from '../bus/bus.ts';
import { type AccountName, accountName } from '../message/account.ts';
import type { TurnStage } from './stages.ts';

export type AccountLimitsDeps = {
  readonly log: Logger;
  channel(name: AccountName): Channel | undefined;
};

export function accountLimitsStage(deps: AccountLimitsDeps): TurnStage {
  return {
    name: 'limits',
    async run(turn, next) {
      const [{ seq, message }] = turn.messages;
      const channel = deps.channel(accountName(message.chat));
      const admission = await channel?.admit?.(message, turn.attempt > 1);
      if (admission === undefined || admission.kind === 'answer') return next(turn);
      const { reason } = admission;
      if (admission.kind === 'wait') throw new TurnDeferred(reason, admission.until);
      deps.log.info('message not answered', { messageId: message.id, reason });
      const { notice: markdown } = admission;
      const { chat, id: replyTo } = message;
      const outbound = markdown === undefined ? [] : [{ chat, markdown, replyTo }];
      return { throughSeq: seq, outbound, note: reason };
    },
  };
}

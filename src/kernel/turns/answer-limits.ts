// Turn stages that leave a message unanswered: its sender is blocked, or its account is over a limit.

import type { Channel } from '../../channels/channel.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { withoutCode } from '../access/admission.ts';
import { type MessageBus, type Turn, TurnDeferred } from '../bus/bus.ts';
import type { Judge } from '../intake/judge.ts';
import { type AccountName, accountName } from '../message/account.ts';
import type { InboundMessage } from '../message/message.ts';
import type { HandledTurn, NextStage, TurnStage } from './stages.ts';

// A blocked sender gets no more answers: waiting messages are set aside, and a turn that runs in the
// sender's own chat is cancelled.

export type BlockedSendersDeps = {
  readonly judge: Judge;
  readonly bus: Pick<MessageBus, 'cancel'>;
  readonly clock: Clock;
  readonly log: Logger;
};

/** Polled: the CLI blocks people in a process of its own. */
const LOOK_MS = 1000;

export function blockedSendersStage(deps: BlockedSendersDeps): TurnStage {
  const { judge, bus, clock, log } = deps;

  async function isBlocked(message: InboundMessage): Promise<boolean> {
    const verdict = withoutCode(await judge(message));
    return verdict.kind === 'refuse' && verdict.isBlocked === true;
  }

  async function watch({ session, messages: [{ message }] }: Turn, signal: AbortSignal) {
    for (;;) {
      await clock.sleep(LOOK_MS, signal);
      if (!(await isBlocked(message))) continue;
      log.info('turn stopped: its sender is blocked', { session });
      await bus.cancel(session, 'sender is blocked');
      return;
    }
  }

  async function watched(turn: Turn, next: NextStage): Promise<HandledTurn> {
    const over = new AbortController();
    const watching = watch(turn, over.signal).catch((error) => {
      if (!over.signal.aborted) log.warn('sender of a turn not looked at', { error });
    });
    try {
      return await next(turn);
    } finally {
      over.abort();
      await watching;
    }
  }

  return {
    name: 'blocked-senders',
    async run(turn, next) {
      const [{ seq, message }] = turn.messages;
      if (message.sender.kind === 'system') return next(turn);
      if (await isBlocked(message)) {
        log.info('message laid aside: its sender is blocked', { session: turn.session });
        return { throughSeq: seq, outbound: [] };
      }
      return message.group === undefined ? watched(turn, next) : next(turn);
    },
  };
}

// Asks the account of a message whether it is answered now, before anything is paid for: what a limit
// holds back waits in the queue, and what it refuses ends with a note in the trace.

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

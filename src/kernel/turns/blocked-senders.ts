// A blocked sender gets no more answers: their waiting messages are set aside, and a turn that runs in
// their own chat is cancelled, whoever blocked them and from where.

import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { withoutCode } from '../access/admission.ts';
import type { MessageBus, Turn } from '../bus/bus.ts';
import type { Judge } from '../intake/judge.ts';
import type { InboundMessage } from '../message/message.ts';
import type { HandledTurn, NextStage, TurnStage } from './stages.ts';

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

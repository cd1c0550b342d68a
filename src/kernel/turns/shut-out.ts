// Whoever is blocked is answered nothing more: what they had waiting is laid aside, and what is being
// answered in their own chat is stopped, whoever blocked them and from where.

import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { withoutCode } from '../access/admission.ts';
import type { MessageBus, Turn } from '../bus/bus.ts';
import type { Judge } from '../intake/judge.ts';
import type { InboundMessage } from '../message/message.ts';
import type { Dispatcher, HandledTurn } from './dispatcher.ts';

export type ShutOutDeps = {
  readonly judge: Judge;
  readonly bus: Pick<MessageBus, 'cancel'>;
  readonly clock: Clock;
  readonly log: Logger;
};

/** The command line decides in a process of its own, so that nobody tells of it. */
const LOOK_MS = 1000;

export function withoutBlocked(dispatcher: Dispatcher, deps: ShutOutDeps): Dispatcher {
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

  async function watched(turn: Turn): Promise<HandledTurn> {
    const over = new AbortController();
    const watching = watch(turn, over.signal).catch((error) => {
      if (!over.signal.aborted) log.warn('sender of a turn not looked at', { error });
    });
    try {
      return await dispatcher.handle(turn);
    } finally {
      over.abort();
      await watching;
    }
  }

  return {
    ...dispatcher,
    async handle(turn) {
      const [{ seq, message }] = turn.messages;
      if (message.sender.kind === 'system') return dispatcher.handle(turn);
      if (await isBlocked(message)) {
        log.info('message laid aside: its sender is blocked', { session: turn.session });
        return { throughSeq: seq, outbound: [] };
      }
      return message.group === undefined ? watched(turn) : dispatcher.handle(turn);
    },
  };
}

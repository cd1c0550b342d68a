// The self-test of the channels over HTTP, one at a time.
//   POST /api/selftest   {}; server-sent events, one per step: `started`, then hops and verdicts

import { z } from 'zod';
import { eventText, type HttpApp, Refusal, replyWithEvents, valid } from '../../http/replies.ts';
import type { Clock } from '../../lib/time/clock.ts';

/** Steps as they are sent; they end with the last channel's verdict. */
export type SelfTest = (signal: AbortSignal) => AsyncIterable<object>;

export type SelfTestRoutesOptions = {
  readonly selfTest: SelfTest;
  readonly clock: Clock;
  /** Aborts when the server closes. */
  readonly closing: AbortSignal;
};

export function addSelfTestRoutes(
  app: HttpApp,
  { selfTest, clock, closing }: SelfTestRoutesOptions,
) {
  let isUnderWay = false;

  async function* steps(signal: AbortSignal): AsyncGenerator<object, void, void> {
    isUnderWay = true;
    try {
      yield { kind: 'started' };
      yield* selfTest(signal);
    } finally {
      isUnderWay = false;
    }
  }

  app.post('/api/selftest', (request, reply) => {
    valid(z.strictObject({}), request.body);
    if (isUnderWay) throw new Refusal(409, 'busy', 'A self-test is under way already.');
    return replyWithEvents(reply, {
      ...{ clock, closing, render: eventText },
      events: steps,
    });
  });
}

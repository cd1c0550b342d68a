// Showing a plan where its checklist never arrived, and what is left behind by showing it often.

import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { buildPlans, type PlanParts } from '../../src/app/build-plans.ts';
import { channelName, chatId, DEFAULT_ACCOUNT } from '../../src/core/ids.ts';
import { sessionKeyOf } from '../../src/core/message.ts';
import type { Plan } from '../../src/core/plan.ts';
import { silentLogger as log } from '../../src/lib/logger.ts';
import { createMemoryStore } from '../support/memory-host.ts';
import { createMovableClock } from '../support/movable-clock.ts';

const chat = { channel: channelName('chat'), account: DEFAULT_ACCOUNT, chat: chatId('1') };
const place = { session: sessionKeyOf(chat), chat, isTainted: false };
const planOf = (done: number): Plan => ({
  goal: 'Count',
  steps: Array.from({ length: 9 }, (_, index) => ({
    ...{ text: `${index}`, after: [], status: index < done ? 'done' : 'pending' },
  })),
});

it('sends the checklist anew where the one before never arrived, and holds on to nothing', async () => {
  const clock = createMovableClock();
  const sent: string[] = [];
  let looks = 0;
  const bus = {
    send: async ({ markdown }: { markdown: string }) => void sent.push(markdown),
    async outbound(id: string) {
      looks += 1;
      return { id, chat, markdown: '', parts: [] };
    },
    trace: async () => ({ state: 'dead' }),
  };
  const parts = {
    ...{ store: { scope: createMemoryStore }, bus, clock, log },
    channelOf: () => ({ editing: { edit: async () => undefined } }),
  };
  const plans = buildPlans(parts as unknown as PlanParts);
  const stop = new AbortController();
  const running = plans.run(stop.signal);
  for (let done = 0; done < 4; done += 1) {
    await plans.keep(planOf(done), place);
    await clock.advance(5000);
  }
  expect(sent.map((text) => /of 9/.test(text) && text.slice(10, 17))).toHaveLength(4);
  expect(looks).toBe(3);
  expect(getEventListeners(stop.signal, 'abort').length).toBeLessThan(3);
  stop.abort();
  await running;
});

// Showing a plan where its checklist never arrived, and what is left behind by showing it often.

import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { openPlans, type PlanParts } from '../../src/features/plans/index.ts';
import type { Plan } from '../../src/features/plans/rules/plan.ts';
import { DeliveryError, NEVER } from '../../src/kernel/message/errors.ts';
import { channelName, chatId, DEFAULT_ACCOUNT } from '../../src/kernel/message/ids.ts';
import { sessionKeyOf } from '../../src/kernel/message/message.ts';
import { silentLogger as log } from '../../src/lib/logger.ts';
import { createMemoryStore, memoryRows } from '../support/memory-host.ts';
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
    ...{ rows: memoryRows(), bus, clock, log },
    channels: { get: () => ({ editing: { edit: async () => undefined } }) },
  };
  const plans = openPlans(parts as unknown as PlanParts);
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

it('shows the plan as it is where a kill came between sending the checklist and noting it', async () => {
  const clock = createMovableClock();
  const inChat = new Map<string, string>();
  const state = createMemoryStore();
  let canEdit = true;
  const bus = {
    async send({ id, markdown }: { id: string; markdown: string }) {
      if (inChat.has(id)) return 'duplicate';
      inChat.set(id, markdown);
      return 'queued';
    },
    outbound: async (id: string) => ({ id, chat, markdown: '', parts: [id] }),
    trace: async () => ({ state: 'sent' }),
  };
  const edit = async (_chat: unknown, id: string, markdown: string) => {
    if (!canEdit) throw new DeliveryError('too old', { certainty: 'not_sent', remedy: NEVER });
    inChat.set(id, markdown);
  };
  const open = (killed: { isKilled: boolean }) => {
    const swap: typeof state.swap = async (...change) => {
      if (killed.isKilled) throw new Error('killed');
      return state.swap(...change);
    };
    const rows = memoryRows({ ...state, swap });
    const channels = { get: () => ({ editing: { edit } }) };
    return openPlans({ ...{ rows, bus, clock, log }, channels } as unknown as PlanParts);
  };
  async function shows(plans: ReturnType<typeof openPlans>) {
    const stop = new AbortController();
    const running = plans.run(stop.signal).catch(() => undefined);
    await clock.advance(5000);
    stop.abort();
    await running;
  }
  for (const round of [1, 2]) {
    canEdit = round === 1;
    const death = { isKilled: false };
    const before = open(death);
    await before.keep({ ...planOf(1), goal: `Goal ${round}` }, place);
    death.isKilled = true;
    await shows(before);
    const after = open({ isKilled: false });
    await after.keep({ ...planOf(3), goal: `Goal ${round}` }, place);
    await shows(after);
    expect([...inChat.values()].at(-1)).toContain(`Goal ${round}** (3 of 9)`);
    await after.keep({ ...planOf(9), goal: `Goal ${round}` }, place);
    await shows(after);
  }
});

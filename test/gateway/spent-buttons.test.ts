// Buttons of closed questions, over a kill and over doors that are not open yet.

import { expect, test } from 'vitest';
import type { Channel } from '../../src/channels/channel.ts';
import { createSpentButtons } from '../../src/kernel/delivery/undelivered.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
  nativeId,
} from '../../src/kernel/message/ids.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMemoryStore, memoryRows } from '../support/memory-host.ts';
import { createMovableClock } from '../support/movable-clock.ts';

const CHAT = { channel: channelName('chat'), account: DEFAULT_ACCOUNT, chat: chatId('1') };
const QUESTION = messageId('question/1/0');

test('buttons that a killed process left are taken away by the next one, once its door is open', async () => {
  const state = createMemoryStore();
  const clock = createMovableClock();
  const closed: string[] = [];
  let isChannelOpen = false;
  const closeChoices: Channel['closeChoices'] = async (_chat, part, _signal, text) => {
    if (!isChannelOpen) throw new Error('not connected');
    closed.push(`${part}: ${text}`);
  };
  const sent = { id: QUESTION, chat: CHAT, markdown: 'May it?', parts: [nativeId('77')] };
  const start = () =>
    createSpentButtons({
      ...{ rows: memoryRows(state), clock, log: silentLogger },
      bus: { outbound: async () => sent as never },
      channel: () => ({ closeChoices }) as Partial<Channel> as Channel,
    });
  const { rows, begin } = start().spend(QUESTION, 'Allowed.');
  await state.setMany(rows);
  begin();
  await expect.poll(() => state.list('')).toHaveLength(1);

  const running = start().run(new AbortController().signal);
  await expect.poll(() => clock.pending).toBe(1);
  expect(closed).toEqual([]);
  isChannelOpen = true;
  await clock.advance(30_000);
  await running;
  expect(closed).toEqual(['77: May it?\n\nAllowed.']);
  expect(await state.list('')).toEqual([]);
  await start().run(new AbortController().signal);
  expect(closed).toHaveLength(1);
});

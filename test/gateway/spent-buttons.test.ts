// Buttons of closed questions, over a kill and over doors that are not open yet.

import { describe, expect, test } from 'vitest';
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
  const said: string[] = [];
  let isChannelOpen = false;
  const closeChoices: Channel['closeChoices'] = async (_chat, part, _signal, text) => {
    if (!isChannelOpen) throw new Error('not connected');
    closed.push(`${part}: ${text}`);
    return true;
  };
  const sent = { id: QUESTION, chat: CHAT, markdown: 'May it?', files: 0, parts: [nativeId('77')] };
  const start = () =>
    createSpentButtons({
      ...{ rows: memoryRows(state), clock, log: silentLogger },
      bus: {
        outbound: async () => sent,
        async send({ markdown }) {
          said.push(markdown);
          return 'queued';
        },
      },
      channel: () => ({ closeChoices }) as Partial<Channel> as Channel,
    });
  const { rows, begin } = start().spend(QUESTION, { now: 'May it?\n\nAllowed.' });
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
  expect(said).toEqual([]);
});

describe('what came of a question', () => {
  const outcome = { now: 'May it?\n\nAllowed.', said: 'Allowed.' };

  async function concluded(closeChoices: Channel['closeChoices'], parts = ['77'], files = 0) {
    const said: string[] = [];
    const sent = {
      id: QUESTION,
      chat: CHAT,
      markdown: 'May it?',
      files,
      parts: parts.map(nativeId),
    };
    const state = createMemoryStore();
    const buttons = createSpentButtons({
      ...{ rows: memoryRows(state), clock: createMovableClock(), log: silentLogger },
      bus: {
        outbound: async () => sent,
        async send({ markdown }) {
          said.push(markdown);
          return 'queued';
        },
      },
      channel: () => ({ closeChoices }) as Partial<Channel> as Channel,
    });
    const { rows, begin } = buttons.spend(QUESTION, outcome);
    await state.setMany(rows);
    begin();
    await expect.poll(() => state.list('')).toEqual([]);
    return said;
  }

  test('stands in the question where its text could be changed, also before a file', async () => {
    const changed: string[] = [];
    const close: Channel['closeChoices'] = async (_chat, part, _signal, now) => {
      changed.push(`${part}: ${now}`);
      return true;
    };
    expect(await concluded(close, ['77', '78'], 1)).toEqual([]);
    expect(changed).toEqual([`77: ${outcome.now}`]);
  });

  test.each<[string, Channel['closeChoices'], string[]]>([
    ['the platform changes no texts', undefined, ['77']],
    ['the text is gone or too old', async () => false, ['77']],
    ['the platform fails', () => Promise.reject(new Error('broken')), ['77']],
    ['the question has several parts', async () => true, ['77', '78']],
  ])('is said in a message where %s', async (_, close, parts) => {
    expect(await concluded(close, parts)).toEqual(['Allowed.']);
  });

  test('is the newest where two come at once', async () => {
    const state = createMemoryStore();
    const changed: (string | undefined)[] = [];
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    const sent = {
      id: QUESTION,
      chat: CHAT,
      markdown: 'May it?',
      files: 0,
      parts: [nativeId('77')],
    };
    const close: Channel['closeChoices'] = async (_chat, _part, _signal, now) => {
      await gate;
      changed.push(now);
      return true;
    };
    const buttons = createSpentButtons({
      ...{ rows: memoryRows(state), clock: createMovableClock(), log: silentLogger },
      bus: { outbound: async () => sent, send: async () => 'queued' },
      channel: () => ({ closeChoices: close }) as Partial<Channel> as Channel,
    });
    for (const now of ['Allowed.', 'Allowed. Ran: ok']) {
      const { rows, begin } = buttons.spend(QUESTION, { now });
      await state.setMany(rows);
      begin();
    }
    open();
    await expect.poll(() => state.list('')).toEqual([]);
    expect(changed.at(-1)).toBe('Allowed. Ran: ok');
  });
});

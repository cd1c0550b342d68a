// What waited for the end of quiet hours is said once, however often it is handed in.

import { expect, it } from 'vitest';
import { createAnnouncer } from '../../src/features/schedule/announcer.ts';
import { channelName, chatId, DEFAULT_ACCOUNT } from '../../src/kernel/message/ids.ts';
import { type InboundMessage, sessionKeyOf } from '../../src/kernel/message/message.ts';
import { memoryRows } from '../support/memory-host.ts';
import { createMovableClock } from '../support/movable-clock.ts';

const chat = { channel: channelName('chat'), account: DEFAULT_ACCOUNT, chat: chatId('1') };

it('is not said again where a job hands in its report once more after a crash', async () => {
  const clock = createMovableClock(Date.UTC(2026, 0, 15, 23));
  const said = new Map<string, InboundMessage>();
  const edge = { isQuiet: true };
  const announcer = createAnnouncer({
    ...{ rows: memoryRows(), clock },
    bus: {
      async accept(batch) {
        for (const { message } of batch) said.set(message.id, message);
        return batch.map(() => 'accepted');
      },
      trace: async (id) => (said.has(String(id)) ? ({ state: 'done' } as never) : undefined),
    },
    sessionOf: async (place) => sessionKeyOf(place),
    quietUntil: async () =>
      edge.isQuiet ? { at: clock.now() + 3_600_000, timeZone: 'UTC' } : undefined,
  });
  const stop = new AbortController();
  const running = announcer.run(stop.signal);
  const report = { id: 'r1', chat, title: 'News', markdown: 'Rain.', isForeign: false };
  await announcer.announce(report);
  await announcer.announce({ ...report, id: 'r2', markdown: 'Sun.' });
  edge.isQuiet = false;
  await clock.advance(60_000);
  expect([...said.values()].map(({ text }) => text)).toEqual([
    '**News, 23:00**\n\nRain.\n\n**News, 23:00**\n\nSun.',
  ]);
  await announcer.announce(report);
  await announcer.announce({ ...report, id: 'r2', markdown: 'Sun.' });
  await clock.advance(60_000);
  expect(said.size).toBe(1);
  stop.abort();
  await running;
});

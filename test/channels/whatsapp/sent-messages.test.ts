// What we sent, in the store of the product: how long it is kept, and that the id never changes.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSentMessages, sentId } from '../../../src/channels/whatsapp/sent-messages.ts';
import { chatId } from '../../../src/core/ids.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { openEmbeddedStore } from '../../../src/store/embedded.ts';
import { createMovableClock } from '../../support/movable-clock.ts';

const DAY = 86_400_000;

test('a message is kept for seven days and more, then it goes', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-sent-'));
  const clock = createMovableClock();
  await using store = await openEmbeddedStore({
    path: join(folder, 'state.db'),
    clock,
    log: silentLogger,
  });
  const state = store.scope('channel:whatsapp:default');
  const sent = createSentMessages({ state, clock });
  const note = (id: string) =>
    sent.store(id, {
      chat: chatId('+491511'),
      jid: '1@lid',
      at: clock.now(),
      state: 'sending',
      message: { extendedTextMessage: { text: `text of ${id}` } },
    });
  await note('FIRST');
  await clock.advance(7 * DAY);
  await note('SECOND');
  expect((await sent.get('FIRST'))?.message.extendedTextMessage?.text).toBe('text of FIRST');
  await clock.advance(2 * DAY);
  await note('THIRD');
  const kept = (await state.list('sent/')).map(({ key }) => key);
  expect(kept).toEqual(['sent/SECOND', 'sent/THIRD']);
  await sent.taken('SECOND');
  await sent.taken('NOBODY');
  expect((await sent.get('SECOND'))?.state).toBe('taken');
  expect(await sent.get('NOBODY')).toBeUndefined();
  await rm(folder, { recursive: true });
});

test('the id of a part is the same in every version of the program', () => {
  expect(sentId('whatsapp:+491511#7/0', 0)).toBe('3EB09C1737EB2FE843D97F');
  expect(sentId('whatsapp:+491511#7/0', 1)).not.toBe(sentId('whatsapp:+491511#7/0', 0));
});

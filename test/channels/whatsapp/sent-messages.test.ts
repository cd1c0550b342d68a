// What we sent, in the store of the product: how long it is kept, and that the id never changes.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSentMessages, sentId } from '../../../src/channels/whatsapp/sent-messages.ts';
import { openEmbeddedStore } from '../../../src/kernel/bus/store/embedded.ts';
import { chatId } from '../../../src/kernel/message/ids.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { createMemoryStore } from '../../support/memory-host.ts';
import { createMovableClock } from '../../support/movable-clock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const DAY = 86_400_000;

test('a message is kept for seven days and more, then it goes', async () => {
  const folder = await temporaryFolder();
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
});

const ROW = { chat: '+491511', jid: '1@lid', at: 1, state: 'taken', message: '' };

test.each([
  ['cut off', '{"chat":"+49'],
  ['nothing', 'null'],
  ['without its state', JSON.stringify({ ...ROW, state: undefined })],
  ['of a state nobody knows', JSON.stringify({ ...ROW, state: 'lost' })],
  // Field 99 of wire type 7, which there is not.
  ['around bytes that are no message', JSON.stringify({ ...ROW, message: 'nwY=' })],
])('a row that is %s reads as a message that was never sent', async (_, damaged) => {
  const state = createMemoryStore();
  const sent = createSentMessages({ state, clock: createMovableClock() });
  await state.set('sent/WHOLE', JSON.stringify(ROW));
  await state.set('sent/DAMAGED', damaged);
  expect(await sent.get('WHOLE')).toMatchObject({ chat: '+491511', state: 'taken' });
  expect(await sent.get('DAMAGED')).toBeUndefined();
  await sent.taken('DAMAGED');
  expect(await sent.get('DAMAGED')).toBeUndefined();
});

test('the id of a part is the same in every version of the program', () => {
  expect(sentId('whatsapp:+491511#7/0', 0)).toBe('3EB09C1737EB2FE843D97F');
  expect(sentId('whatsapp:+491511#7/0', 1)).not.toBe(sentId('whatsapp:+491511#7/0', 0));
});

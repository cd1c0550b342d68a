// What is to be forgotten, while it takes its time: nobody waits at the door for it, the person hears of
// the end, and a kill in between costs nothing of it.

import { expect, it } from 'vitest';
import type { ForgetReport } from '../../src/features/memory/personal-data.ts';
import { Erasure } from '../../src/features/memory/personal-data.ts';
import { channelName, chatId, DEFAULT_ACCOUNT } from '../../src/kernel/message/ids.ts';
import { silentLogger as log } from '../../src/lib/logger.ts';
import { createMemoryStore, memoryRows } from '../support/memory-host.ts';
import { createMovableClock } from '../support/movable-clock.ts';

const chat = { channel: channelName('chat'), account: DEFAULT_ACCOUNT, chat: chatId('1') };
const wish = { reach: { words: 'zeppelin', notes: '', chats: [] }, chat };
const report: ForgetReport = { noteLines: 1, entries: 2, texts: 0, underWay: [] };

function create() {
  const clock = createMovableClock();
  const state = createMemoryStore();
  const sent = new Map<string, string>();
  const bus = {
    async send({ id = '', markdown }: { readonly id?: string; readonly markdown: string }) {
      sent.set(id, markdown);
    },
  };
  let tries = 0;
  let works = Promise.withResolvers<ForgetReport>();
  const kept = {
    forget: () => {
      tries += 1;
      return works.promise;
    },
    scrub: async () => undefined,
  };
  const again = () => {
    works = Promise.withResolvers();
    return works;
  };
  const process = () =>
    new Erasure({ kept, rows: memoryRows(state), bus: bus as never, clock, log });
  return { clock, state, sent, process, again, first: works, tries: () => tries };
}

it('is said at once where it is quick', async () => {
  const { state, sent, process, first } = create();
  const work = process();
  await work.keep('1', wish);
  first.resolve(report);
  expect(await work.decided('1')).toMatch(/^Forgotten: 1 line of notes, 2 messages/);
  expect(await state.list('')).toEqual([]);
  expect(await work.decided('1')).toBeUndefined();
  expect(sent.size).toBe(0);
});

it('is told when it is over where it takes long, tried again where it fails, and done once', async () => {
  const { clock, state, sent, process, first, again, tries } = create();
  const work = process();
  await work.keep('1', wish);
  const pressed = work.decided('1');
  await clock.advance(2000);
  expect(await pressed).toMatch(/^I am deleting it/);
  const second = again();
  first.reject(new Error('no room on the disk'));
  await clock.advance(60_000);
  expect(tries()).toBe(2);
  expect(sent.size).toBe(0);
  second.resolve(report);
  await clock.advance(0);
  expect([...sent]).toEqual([['forget/1/done', expect.stringMatching(/^Forgotten: /)]]);
  expect(await state.list('')).toEqual([]);
});

it('is taken up by the next process, unless it was never decided', async () => {
  const { clock, sent, process, again, tries } = create();
  const killed = process();
  await killed.keep('1', wish);
  await killed.keep('2', wish);
  void killed.decided('1');
  await clock.advance(0);
  again().resolve(report);
  const stop = new AbortController();
  const running = process().run(stop.signal);
  await clock.advance(2000);
  expect([...sent.keys()]).toEqual(['forget/1/done']);
  expect(tries()).toBe(2);
  stop.abort();
  await running;
});

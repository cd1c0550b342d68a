// Questions to a person that nobody answers in time, and those a process left half asked.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ASK_HOURS, createAsks, openAsks } from '../../src/features/approvals/asks.ts';
import { NO_RIGHTS } from '../../src/kernel/access/rights.ts';
import { createMessageBus } from '../../src/kernel/bus/message-bus.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
  nativeId,
  turnId,
} from '../../src/kernel/message/ids.ts';
import { type InboundMessage, sessionKeyOf } from '../../src/kernel/message/message.ts';
import { openQuestionRows } from '../../src/kernel/questions/question-rows.ts';
import { createQuestions } from '../../src/kernel/questions/questions.ts';
import { createRows } from '../../src/kernel/rows.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { questionEdge } from '../support/question-edge.ts';
import { person } from './people-rig.ts';

const CHAT = { channel: channelName('chat'), account: DEFAULT_ACCOUNT, chat: chatId('1') };
const SESSION = sessionKeyOf(CHAT);

async function makeRig() {
  const clock = createMovableClock();
  const log = silentLogger;
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-asks-'));
  const store = await openEmbeddedStore({ path: join(folder, 'state.db'), clock, log });
  const limits = { maxPending: 100, maxPendingPerChat: 10 };
  const bus = createMessageBus({ store, clock, log, limits });
  /** As a process has it that was started now. */
  function process() {
    const questions = createQuestions({
      ...{ rows: openQuestionRows(createRows(store)), bus, clock, log, randomBytes },
      handlers: () => ({ ask: asks.handler }),
      ...questionEdge(bus, () => false),
    });
    const rows = openAsks(createRows(store));
    const asks = createAsks({ asks: rows, bus, questions, clock, log });
    return { questions, asks };
  }
  const says = (text: string, from = '1'): InboundMessage => ({
    id: messageId(`chat:${from}:${text}`),
    chat: CHAT,
    sender: person(from),
    addressing: 'direct',
    text,
    sentAt: clock.now(),
    receivedAt: clock.now(),
  });
  const ask = (
    { asks }: Pick<ReturnType<typeof process>, 'asks'>,
    newest = says('go on'),
    turn = `${SESSION}#1`,
  ) =>
    asks.ask(
      {
        question: { text: 'Which one?', choices: ['this', 'that'], allowsWords: true },
        ...{ rights: NO_RIGHTS, isTainted: true, ordinal: 0 },
      },
      { session: SESSION, turnId: turnId(turn), newest },
    );
  return {
    ...{ clock, store, process, says, ask },
    async [Symbol.asyncDispose]() {
      await bus[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

test('a question nobody answered is told the model once, and answered no more', async () => {
  await using rig = await makeRig();
  const { questions, asks } = rig.process();
  const stop = new AbortController();
  const running = questions.run(stop.signal);
  expect(await rig.ask({ asks })).toMatch(/was sent/);
  const [open] = await questions.open();
  await rig.clock.advance(ASK_HOURS * 3_600_000);
  await expect.poll(() => questions.open()).toEqual([]);
  const late = rig.says('that');
  const first = await asks.bind(SESSION, late);
  expect(first.message.note).toMatch(/^\[Nobody answered your question "Which one\?" in time/);
  // The same turn, tried again by another process.
  expect(await rig.process().asks.bind(SESSION, late)).toMatchObject({ message: first.message });
  expect((await asks.bind(SESSION, rig.says('and now'))).message.note).toBeUndefined();
  const press = { ...rig.says('x'), press: open?.choices[0]?.token ?? '' };
  expect((await questions.press(press, 'trusted'))?.words).toMatch(/can no longer/);
  stop.abort();
  await running;
});

test('a question is on disk with what it answers, and gone from it once words answer it', async () => {
  await using rig = await makeRig();
  await rig.ask(rig.process());
  const next = rig.process();
  expect(await next.questions.open()).toMatchObject([{ markdown: 'Which one?' }]);
  const stranger = await next.asks.bind(SESSION, rig.says('2', 'somebody'));
  expect(stranger.message.note).toBeUndefined();
  const bound = await next.asks.bind(SESSION, rig.says('2.'));
  expect(bound.message.note).toContain('they chose "that"');
  expect(bound.isForeign).toBe(true);
  expect(bound.rightsFrom({ ...NO_RIGHTS, write: 'free' })).toEqual(NO_RIGHTS);
  expect(await next.questions.open()).toEqual([]);
});

test('a question that was answered by words is closed where the process died before it did', async () => {
  await using rig = await makeRig();
  await rig.ask(rig.process());
  // A question on its way is left alone.
  const { claimed } = await rig.store.claimDeliveries(CHAT.channel, () => 10);
  const sent = { kind: 'sent', nativeIds: [nativeId('77')] } as const;
  for (const delivery of claimed) await rig.store.settle(delivery, sent);
  const state = rig.store.scope('questions');
  const rows = await state.list('');
  const { asks } = rig.process();
  await asks.bind(SESSION, rig.says('2.'));
  for (const { key, value } of rows) await state.set(key, value);
  const next = rig.process();
  const stop = new AbortController();
  const watching = next.questions.watch(stop.signal);
  await expect.poll(() => next.questions.open()).toEqual([]);
  stop.abort();
  await watching;
});

test('a question nobody comes back to is kept for a month and no longer', async () => {
  await using rig = await makeRig();
  await rig.ask(rig.process());
  await rig.clock.advance(29 * 86_400_000);
  const rows = () => rig.store.scope('asks').list('');
  const later = (n: number) => rig.ask(rig.process(), rig.says(`later ${n}`), `${SESSION}#${n}`);
  await later(2);
  expect(await rows()).toHaveLength(2);
  await rig.clock.advance(2 * 86_400_000);
  await later(3);
  expect(await rows()).toHaveLength(2);
});

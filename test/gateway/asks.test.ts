// Questions to a person that nobody answers in time, and those a process left half asked.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ASK_HOURS, createAsks } from '../../src/features/approvals/asks.ts';
import { NO_RIGHTS } from '../../src/kernel/access/rights.ts';
import { createMessageBus } from '../../src/kernel/bus/message-bus.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
  turnId,
} from '../../src/kernel/message/ids.ts';
import { type InboundMessage, sessionKeyOf } from '../../src/kernel/message/message.ts';
import { openQuestionRows } from '../../src/kernel/questions/question-rows.ts';
import { createQuestions } from '../../src/kernel/questions/questions.ts';
import { createRows } from '../../src/kernel/rows.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { questionEdge } from '../support/question-edge.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { person } from './people-rig.ts';

const CHAT = { channel: channelName('chat'), account: DEFAULT_ACCOUNT, chat: chatId('1') };
const SESSION = sessionKeyOf(CHAT);

async function makeRig() {
  const clock = createMovableClock();
  const log = silentLogger;
  const folder = await temporaryFolder();
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
    const asks = createAsks({ bus, questions, clock, log });
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

test('a question that ended is kept for a week and no longer', async () => {
  await using rig = await makeRig();
  const first = rig.process();
  await rig.ask(first);
  await first.asks.bind(SESSION, rig.says('2.'));
  const rows = () => rig.store.scope('questions').list('ended:');
  await rig.clock.advance(6 * 86_400_000);
  await first.questions.removeOld();
  expect(await rows()).toHaveLength(1);
  await rig.clock.advance(2 * 86_400_000);
  await first.questions.removeOld();
  expect(await rows()).toEqual([]);
});

// What one turn of a shared conversation takes in, over the real bus.

import { afterEach, expect, it } from 'vitest';
import type { InboundEntry } from '../../src/kernel/bus/bus.ts';
import { messageId, userId } from '../../src/kernel/message/ids.ts';
import type { SystemSender } from '../../src/kernel/message/message.ts';
import { createBatch } from '../../src/kernel/turns/batch.ts';
import { makeEmbeddedBench } from '../bus/embedded-bench.ts';
import {
  type BusBench,
  CHANNEL,
  eventually,
  message,
  resultOf,
  startWork,
} from '../contract/bus-bench.ts';

const GROUP = 'group';
let bench: BusBench;

afterEach(() => bench[Symbol.asyncDispose]());

function says(who: string, text: string): InboundEntry {
  const sender = { kind: 'person', id: userId(who), verified: 'verified' } as const;
  return { kind: 'queue', message: { ...message(GROUP, text), sender } };
}

/** What a helper says that this person had started; nobody: the gateway itself. */
function reports(whose: string | undefined, text: string): InboundEntry {
  const sender: SystemSender = {
    kind: 'system',
    source: 'subagent',
    ...(whose === undefined ? {} : { paidBy: [`${CHANNEL}:${whose}`] as const }),
  };
  return { kind: 'queue', message: { ...message(GROUP, text), id: messageId(text), sender } };
}

/** The texts of the turns that come of these messages. */
async function turnsOf(...entries: readonly InboundEntry[]): Promise<readonly string[][]> {
  bench = await makeEmbeddedBench();
  const bus = await bench.open();
  const turns: string[][] = [];
  let taken = 0;
  await bus.accept(entries);
  const work = startWork(bus, async (turn) => {
    const { messages } = createBatch(turn, {
      commands: { find: () => undefined },
      startedFrom: () => undefined,
    });
    turns.push(messages.map((each) => each.message.text));
    taken += messages.length;
    return { ...resultOf(turn), throughSeq: messages.at(-1)?.seq ?? 0 };
  });
  await eventually(bench.clock, () => taken === entries.length);
  await work.stop();
  return turns;
}

it('takes in what a helper reports to whoever had it started', async () => {
  const turns = await turnsOf(
    says('ada', 'go on'),
    reports('ada', 'found it'),
    says('ada', 'well?'),
  );
  expect(turns).toEqual([['go on', 'found it', 'well?']]);
});

it('leaves what a helper reports to somebody else to a turn of their own', async () => {
  const turns = await turnsOf(
    says('ada', 'hello'),
    reports('bob', 'found it'),
    says('bob', 'well?'),
  );
  expect(turns).toEqual([['hello'], ['found it', 'well?']]);
});

it('answers each person of a group in a turn of their own', async () => {
  const inGroup = (who: string, text: string): InboundEntry => {
    const { message: said } = says(who, text);
    return { kind: 'queue', message: { ...said, group: { ids: [said.chat.chat] } } };
  };
  const turns = await turnsOf(
    inGroup('ada', 'who is right?'),
    inGroup('ada', 'she or me?'),
    inGroup('bob', 'what time is it?'),
    inGroup('ada', 'well?'),
  );
  expect(turns).toEqual([['who is right?', 'she or me?'], ['what time is it?'], ['well?']]);
});

it('lets nobody in on what the gateway has found out by itself', async () => {
  const turns = await turnsOf(says('ada', 'hello'), reports(undefined, 'all is well'));
  expect(turns).toEqual([['hello'], ['all is well']]);
});

// Who hears of the end of a helper, and how often: over a wait, a kill and a full queue.

import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Votes } from '../../src/features/subagents/learnt.ts';
import { openSubagents } from '../../src/features/subagents/personal-data.ts';
import { type SubagentRun, subagentChat } from '../../src/features/subagents/rules/subagent.ts';
import { createSubagentSeries } from '../../src/features/subagents/series.ts';
import { subagentsSchema, votingSchema } from '../../src/features/subagents/settings.ts';
import { createSubagentService } from '../../src/features/subagents/subagent-service.ts';
import { createSubagentStarts } from '../../src/features/subagents/subagent-starts.ts';
import { ALL_RIGHTS } from '../../src/kernel/access/rights.ts';
import type { MessageBus } from '../../src/kernel/bus/bus.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { BusFullError } from '../../src/kernel/message/errors.ts';
import { channelName, chatId, DEFAULT_ACCOUNT, turnId } from '../../src/kernel/message/ids.ts';
import { type InboundMessage, sessionKeyOf } from '../../src/kernel/message/message.ts';
import { OWNER_TURN } from '../../src/kernel/message/untrusted.ts';
import { createRows } from '../../src/kernel/rows.ts';
import { silentLogger as log } from '../../src/lib/logger.ts';
import { memoryRows } from '../support/memory-host.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const chat = { channel: channelName('chat'), account: DEFAULT_ACCOUNT, chat: chatId('1') };
const POLL = { timeout: 30_000, interval: 5 };
const DONE = { state: 'done', result: 'forty-two', isForeign: false } as const;

function runOf(id: string, more: Partial<SubagentRun> = {}): SubagentRun {
  return {
    ...{ id, label: id, plan: { kind: 'task', task: 'count' }, depth: 1, attempt: 1, answers: [] },
    parent: {
      ...{ session: sessionKeyOf(chat), chat, payingChat: chat, payer: {} },
      ...{ rights: ALL_RIGHTS, isTainted: false, person: OWNER_TURN },
    },
    terms: { readOnly: false, prompt: '', tokens: 1000, minutes: 5 },
    ...{ startedAt: 0, state: 'running', telling: 'due' },
    ...more,
  };
}

function makeRig() {
  const clock = createMovableClock(1000);
  const subagents = openSubagents(memoryRows());
  const { runs } = subagents;
  const queued = new Map<string, InboundMessage>();
  const ended = new Set<string>();
  const edge = { isFull: false };
  const bus: Pick<MessageBus, 'accept' | 'cancel' | 'trace'> = {
    async accept(batch) {
      if (edge.isFull) throw new BusFullError('full');
      for (const { message } of batch) queued.set(message.id, message);
      return batch.map(() => 'accepted');
    },
    cancel: async () => ({ running: true, withdrawn: 0, unsent: 0 }),
    async trace(asked) {
      const id = String(asked);
      const message = queued.get(id);
      if (message === undefined) return undefined;
      const state = ended.has(id) ? 'done' : 'pending';
      return {
        ...message,
        id: message.id,
        direction: 'inbound',
        state,
        steps: [],
        answers: [],
      } as never;
    },
  };
  const open = () => createSubagentService({ subagents, bus, clock, log });
  const told = () =>
    [...queued.values()].filter((message) => message.chat.channel === chat.channel);
  return { runs, clock, edge, ended, queued, open, told };
}

it('whoever waits for a helper has its result and is not told again; who gave up waiting is', async () => {
  const { runs, open, told } = makeRig();
  const service = open();
  await service.begin(runOf('h1'));
  const waiting = service.reading([runOf('h1')], async () => {
    await service.over('h1');
    return ['h1'];
  });
  await service.end('h1', DONE);
  await waiting;
  expect([await runs.get('h1'), told()]).toMatchObject([{ state: 'done', telling: 'over' }, []]);

  await service.begin(runOf('h2'));
  const stop = Promise.withResolvers<never>();
  const stopped = service.reading([runOf('h2')], () => stop.promise).catch(() => 'stopped');
  await service.end('h2', { ...DONE, isForeign: true });
  expect(told()).toEqual([]);
  stop.reject(new Error('the turn was stopped'));
  await stopped;
  expect(told()).toMatchObject([
    { id: 'subagent/h2/end-1', sender: { isTainted: true, rights: ALL_RIGHTS } },
  ]);
});

it('whoever waits once more, because a crash took what the wait gave, hears which have ended', async () => {
  const { runs, clock, open } = makeRig();
  const service = open();
  const rest = { terms: {} as never, settings: () => ({}) as never };
  const starts = createSubagentStarts({ runs, service, clock, ...rest });
  const { session } = runOf('h1').parent;
  await service.begin(runOf('h1'));
  const { signal } = new AbortController();
  const waiting = starts.wait(undefined, 1000, { session }, signal);
  await service.end('h1', DONE);
  expect((await waiting).text).toContain('forty-two');
  const again = await starts.wait(undefined, 1000, { session }, signal);
  expect(again.text).toMatch(/^No subagent .* running.*h1 .*done/s);
});

it('an end that could not be told is told by the next process, once, and a lost helper is no ghost', async () => {
  const { runs, edge, ended, open, told } = makeRig();
  await open().begin(runOf('h1'));
  await open().begin(runOf('h2'));
  edge.isFull = true;
  await expect(open().end('h1', DONE)).rejects.toThrow(BusFullError);
  await expect(open().begin(runOf('h3'))).rejects.toThrow(BusFullError);
  expect(await runs.get('h3')).toMatchObject({ state: 'failed', telling: 'over' });
  edge.isFull = false;
  // Its message is over and nobody noted how.
  ended.add('subagent/h2/task');
  for (let start = 0; start < 2; start += 1) await open().recover();
  expect(told().map(({ id }) => id)).toEqual(['subagent/h1/end-1', 'subagent/h2/end-1']);
  expect(told()[1]?.text).toContain('It was lost');
});

it('what a helper started ends with it, told to nobody; a person who ends one is heard of', async () => {
  const { runs, open, told } = makeRig();
  const service = open();
  const above = runOf('h1');
  const inner = subagentChat('h1');
  const parent = { ...above.parent, chat: inner, session: sessionKeyOf(inner) };
  for (const run of [above, runOf('h2', { parent, depth: 2 }), runOf('h3')])
    await service.begin(run);
  await service.end('h1', DONE);
  expect(await runs.get('h2')).toMatchObject({ state: 'cancelled' });
  expect(await service.cancel(runOf('h3'), 'by a person')).toBe(true);
  expect(await service.cancel(runOf('h3'), 'by a person')).toBe(false);
  await service.end('h3', DONE);
  expect(await runs.get('h3')).toMatchObject({ state: 'cancelled', result: 'ended by a person' });
  expect(told().map(({ id }) => id)).toEqual(['subagent/h1/end-1', 'subagent/h3/killed-1']);
  // A kill came after the end of those above, before these were ended.
  await service.begin(runOf('h4', { parent, depth: 2 }));
  await service.begin(runOf('h5', { series: 'h3' }));
  await open().recover();
  for (const id of ['h4', 'h5']) expect(await runs.get(id)).toMatchObject({ state: 'cancelled' });
});

it('what is long over is forgotten also while the same process goes on', async () => {
  const clock = createMovableClock();
  const path = join(await temporaryFolder(), 'state.db');
  await using store = await openEmbeddedStore({ path, clock, log });
  const subagents = openSubagents(createRows(store));
  const bus = { accept: async () => [], cancel: async () => ({}), trace: async () => undefined };
  const service = createSubagentService({ subagents, bus: bus as never, clock, log });
  await service.begin(runOf('h1'));
  await service.end('h1', DONE);
  await clock.jump(8 * 86_400_000);
  await service.begin(runOf('h2'));
  expect((await subagents.runs.list()).map(({ id }) => id)).toEqual(['h2']);
});

it('asks the voters of a step at once, and after a kill only the one that was not heard', async () => {
  const { runs, open } = makeRig();
  const votes = new Votes(memoryRows());
  const plan = { kind: 'pipeline', steps: [{ prompt: 'which?', aheadBy: 2 }] } as const;
  const drive = () => {
    const service = open();
    const begun: string[] = [];
    const gone = new AbortController();
    const series = createSubagentSeries({
      ...{ runs, log, votes, voting: () => votingSchema.parse(undefined) },
      service: {
        begin: (run) => service.begin(run),
        end: (id, end) => service.end(id, end),
        over: (id) => service.over(id),
      },
      async childOf({ id: above }, child) {
        begun.push(child.id);
        return runOf(child.id, { ...child, series: above });
      },
    });
    service.drivenBy((run) => series.drive(run));
    const stopped = series.run(gone.signal);
    const kill = () => {
      gone.abort();
      return stopped;
    };
    return { service, begun, kill };
  };
  const first = drive();
  await first.service.begin(runOf('h1', { plan }));
  await expect.poll(async () => (await runs.list()).length, POLL).toBe(3);
  expect(first.begun).toEqual(['h1-1-1-1', 'h1-1-1-2']);
  await first.service.end('h1-1-1-2', { ...DONE, result: 'blue' });
  await first.kill();

  const second = drive();
  await second.service.recover();
  await second.service.end('h1-1-1-1', { ...DONE, result: 'red' });
  await expect.poll(async () => (await runs.list()).length, POLL).toBe(5);
  expect(second.begun).toEqual(['h1-1-1-3', 'h1-1-1-4']);
  await second.service.end('h1-1-1-3', { ...DONE, result: 'Red.' });
  await second.service.end('h1-1-1-4', { ...DONE, result: 'red' });
  await second.service.over('h1');
  expect(await runs.get('h1')).toMatchObject({ state: 'done', result: 'red' });
  expect((await votes.lines())[0]).toMatch(/: 1 \(0 accepted by the pilot voters, 1 won by a lead/);
  await second.kill();
});

const asker = {
  ...runOf('h0').parent,
  turnId: turnId('chat:1#1'),
  payer: { chat, sender: { kind: 'system', source: 'webhook' } } as never,
};
const settings = () => subagentsSchema.parse({ maxRunning: 2, maxPerParent: 2 });
const termsOf = async () => runOf('h0').terms;

it('begins no more than may run, in one conversation and altogether', async () => {
  const { runs, clock, open } = makeRig();
  const service = open();
  const terms = { of: termsOf, described: async () => [] };
  const starts = createSubagentStarts({ runs, service, clock, terms, settings });
  const wish = (id: string) => ({ id, plan: { kind: 'task', task: id } }) as const;
  const elsewhere = { ...asker, session: sessionKeyOf({ ...chat, chat: chatId('2') }) };
  await starts.start(wish('one'), asker);
  await starts.start(wish('two'), elsewhere);
  await expect(starts.start(wish('three'), asker)).rejects.toThrow(/2 subagents.*in all/);
  const [first] = await runs.list();
  await service.end(first?.id ?? '', DONE);
  expect((await starts.start(wish('three'), asker)).text).toMatch(/^Started/);
});

it('the helpers of a series that was shown untrusted content begin with them', async () => {
  const { runs, clock, open } = makeRig();
  const terms = { of: termsOf, described: async () => [] };
  const starts = createSubagentStarts({ runs, service: open(), clock, terms, settings });
  const child = { id: 'c', label: 'c', plan: { kind: 'task', task: 'go on' } } as const;
  const taintOf = async (more: Partial<SubagentRun>) =>
    (await starts.childOf(runOf('s', more), child)).parent.isTainted;
  expect(await taintOf({})).toBe(false);
  expect(await taintOf({ isForeign: true })).toBe(true);
});

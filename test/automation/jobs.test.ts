// When jobs run, how often, with what rights, and what people hear of it: over restarts, kills, clocks
// that are changed and nights in which nobody is to be disturbed. Case R19 of the catalogue.

import { describe, expect, test } from 'vitest';
import { createCron } from '../../src/features/schedule/cron-tool.ts';
import type { JobWish } from '../../src/features/schedule/rules/job.ts';
import { JobError } from '../../src/features/schedule/rules/schedule.ts';
import { NO_RIGHTS } from '../../src/kernel/access/rights.ts';
import { noSchedules } from '../support/no-jobs.ts';
import { asker, makeJobsRig } from './rig.ts';

const say = (when: object, text = 'Drink water') => ({ kind: 'say' as const, text, ...when });
const ask = (when: object, text = 'Look at the news') => ({ kind: 'ask' as const, text, ...when });
const DAILY = { cron: '0 8 * * *' };

test('the most jobs that there may be are named where one more is refused', async () => {
  const rig = await makeJobsRig('2026-01-15T12:00:00Z');
  for (let job = 0; job < 100; job += 1) await rig.service.add(say(DAILY, `Job ${job}`), asker());
  await expect(rig.service.add(say(DAILY), asker())).rejects.toThrow(
    /You have 100 jobs, the maximum/,
  );
});

describe('a reminder', () => {
  test('comes at the same time of the clock when that is put forward and back, without a model', async () => {
    const rig = await makeJobsRig('2026-03-28T12:00:00Z');
    await rig.service.add(say(DAILY), asker());
    await rig.until('2026-03-29T06:00:00Z');
    await rig.until('2026-03-29T07:00:00Z');
    await rig.until('2026-03-30T06:00:00Z');
    expect(rig.heard()).toEqual(['2026-03-29T06:00 Drink water', '2026-03-30T06:00 Drink water']);
    expect(rig.runs).toEqual([]);
  });

  test('that was missed for days comes once, marked as late, and then as usual', async () => {
    const rig = await makeJobsRig('2026-01-15T12:00:00Z');
    const { job } = await rig.service.add(say(DAILY), asker());
    await rig.away('2026-01-20T10:30:00Z');
    const heard = rig.heard();
    expect(heard).toHaveLength(1);
    expect(heard[0]).toMatch(/^2026-01-20T10:30 .*due Friday, 2026-01-16 08:00/s);
    expect(await rig.service.list(asker())).toMatchObject([
      { job: { id: job.id }, next: expect.stringContaining('2026-01-21 08:00') },
    ]);
    await rig.until('2026-01-21T07:00:00Z');
    expect(rig.heard()).toHaveLength(1);
  });

  test.each([
    ['a second before', '06:59:59'],
    ['in the second of', '07:00:00'],
    ['a second after', '07:00:01'],
  ])('is there once where the process stops %s its time', async (_when, time) => {
    const rig = await makeJobsRig('2026-01-15T12:00:00Z');
    await rig.service.add(say(DAILY), asker());
    await rig.until(`2026-01-16T${time}Z`);
    await rig.away(`2026-01-16T${time}Z`);
    await rig.away('2026-01-16T07:00:30Z');
    await rig.until('2026-01-16T09:00:00Z');
    expect(rig.heard()).toHaveLength(1);
  });

  test('counts from the request where its approval took a while, and comes at once where it is over', async () => {
    const rig = await makeJobsRig('2026-01-15T12:05:00Z');
    const requestedAt = Date.parse('2026-01-15T12:00:00Z');
    const schedules = {
      ...noSchedules(),
      add: async (wish: JobWish) => (await rig.service.add(wish, asker())).line,
    };
    const cron = createCron(schedules);
    for (const [at, text] of [
      ['in 20m', 'Tea'],
      ['in 1m', 'Late'],
    ] as const) {
      await cron.run({ action: 'add', kind: 'say', at, text }, { requestedAt } as never);
    }
    await rig.until('2026-01-15T12:21:00Z');
    expect(rig.heard()).toEqual(['2026-01-15T12:05 Late', '2026-01-15T12:20 Tea']);
  });

  test('for once is told and gone; what is over, unclear or skipped by the clock is explained', async () => {
    const rig = await makeJobsRig('2026-03-28T12:00:00Z');
    await rig.service.add(say({ at: 'in 20m' }, 'Tea is ready'), asker());
    await rig.until('2026-03-28T12:20:00Z');
    expect(rig.heard()).toEqual(['2026-03-28T12:20 Tea is ready']);
    expect(await rig.service.list(asker())).toEqual([]);
    expect(await rig.jobs.list()).toHaveLength(1);
    await rig.until('2026-03-29T12:21:00Z');
    expect(await rig.jobs.list()).toEqual([]);
    await rig.clock.jump(-86_460_000);
    const refused = (when: object) =>
      rig.service.add(say(when), asker()).catch(({ message }) => message);
    expect(await refused({ at: '2026-03-28 08:00' })).toMatch(
      /is in the past; now it is .*Europe\/Berlin/,
    );
    expect(await refused({ at: 'tomorrow at five' })).toMatch(/Write "2026-03-29 .*Europe\/Berlin/);
    expect(await refused({ at: '2026-03-29 02:30' })).toMatch(/does not exist in Europe\/Berlin/);
    expect(await refused({ every: '10s' })).toMatch(/from 1m to 366d/);
    expect(await refused({ cron: '61 8 * * *' })).toMatch(
      /not a cron expression.*"0 8 \* \* 1-5"/s,
    );
    expect(await refused({ cron: '0 0 31 2 *' })).toMatch(/never runs/);
    expect(await refused({})).toMatch(/exactly one way/);
    expect(await refused({ ...DAILY, timeZone: 'Mars/Base' })).toMatch(/not a time zone/);
    expect(await refused({ ...DAILY, to: 'pigeon' })).toMatch(/use one of: chat, last/);
  });
});

test('a job that cannot be started holds up no other, and the owner hears of it once', async () => {
  const rig = await makeJobsRig('2026-01-15T12:00:00Z');
  rig.edge.broken = 'Broken';
  await rig.service.add({ ...say({ every: '10m' }), name: 'Broken' }, asker());
  await rig.service.add(say({ every: '10m' }), asker());
  for (const minute of ['10', '20', '30', '40', '50']) {
    await rig.until(`2026-01-15T12:${minute}:00Z`);
    expect(rig.heard()).toEqual([
      expect.stringMatching(new RegExp(`12:${minute} .*Drink water`, 's')),
    ]);
  }
  expect(rig.told).toEqual([expect.stringContaining('Broken')]);
  rig.edge.broken = '';
  await rig.until('2026-01-15T14:00:00Z');
  expect(rig.heard().join()).toContain('Broken');
});

describe('a job for the agent', () => {
  test('runs once where the process is killed between its start and the note of it', async () => {
    const rig = await makeJobsRig('2026-01-15T12:00:00Z');
    await rig.service.add(ask(DAILY), asker());
    rig.edge.diesOnStart = true;
    await rig.until('2026-01-16T07:00:00Z');
    rig.edge.diesOnStart = false;
    await rig.away('2026-01-16T07:00:20Z');
    await rig.until('2026-01-16T12:00:00Z');
    expect(rig.runs).toHaveLength(1);
    expect(rig.heard()).toEqual([expect.stringMatching(/\*\*Look at the news\*\*\n\ndone$/)]);
  });

  test('reports under its name, into the conversation of the chat, and says nothing where nothing is', async () => {
    const rig = await makeJobsRig('2026-01-15T12:00:00Z');
    rig.edge.answer = () => 'Three things happened.';
    await rig.service.add(ask({ every: '1h', name: 'News' }), asker());
    await rig.until('2026-01-15T13:00:00Z');
    expect(rig.heard()).toEqual(['2026-01-15T13:00 **News**\n\nThree things happened.']);
    expect(rig.remarks[0]?.text).toContain('Three things happened.');
    expect(rig.remarks[0]?.isForeign).toBeUndefined();
    rig.edge.answer = () => '**[SILENT]**.';
    await rig.until('2026-01-15T14:00:00Z');
    expect(rig.runs).toHaveLength(2);
    rig.edge.answer = () => 'A page said so.';
    rig.edge.entries = [{ role: 'user', isForeign: true } as never];
    await rig.until('2026-01-15T15:00:00Z');
    expect(rig.heard()).toHaveLength(1);
    expect(rig.remarks[1]?.isForeign).toBe(true);
  });

  test('has the rights of whoever made it, never more than at that time, and makes no jobs', async () => {
    const rig = await makeJobsRig('2026-01-15T12:00:00Z');
    await rig.service.add(
      ask({ at: 'in 5m' }),
      asker({ ...NO_RIGHTS, read: 'free', schedule: 'free' }),
    );
    await rig.until('2026-01-15T12:05:00Z');
    expect(rig.runs[0]?.messages[0].message.sender).toMatchObject({
      rights: { ...NO_RIGHTS, read: 'free' },
      paidBy: ['chat:1'],
    });
  });

  test('of somebody who was shut out is switched off, and the owner told', async () => {
    const rig = await makeJobsRig('2026-01-15T12:00:00Z');
    const ann = asker();
    await rig.service.add(ask(DAILY), ann);
    await rig.service.add(ask(DAILY), { ...ann, person: { ...ann.person, name: '' } });
    rig.edge.verdict = { kind: 'refuse', gate: 'blocked', wasCalled: false } as never;
    await rig.until('2026-01-16T07:00:00Z');
    await rig.until('2026-01-17T07:00:00Z');
    expect(rig.runs).toEqual([]);
    const told = rig.told.map((text) => text.replace(/.*disabled: /, '')).toSorted();
    expect(told).toEqual([
      '1 on chat, who created it, no longer has access.',
      'Ann, who created it, no longer has access.',
    ]);
    expect(await rig.service.list(asker())).toMatchObject([
      { next: 'disabled' },
      { next: 'disabled' },
    ]);
  });

  test('that fails is told once, tried later and later, and given up with a word', async () => {
    const rig = await makeJobsRig('2026-01-15T12:00:00Z');
    rig.edge.answer = () => ({ failed: 'The model is down.' });
    const { job } = await rig.service.add(ask({ every: '1m' }), asker());
    await rig.until('2026-01-15T12:01:00Z');
    expect(rig.heard()).toEqual([expect.stringContaining('Failed: The model is down.')]);
    await rig.until('2026-01-15T12:02:00Z');
    expect(rig.heard()).toEqual([]);
    await rig.until('2026-01-15T12:03:00Z');
    expect(rig.runs).toHaveLength(3);
    expect(rig.heard()).toEqual([expect.stringContaining(`/cron enable ${job.id}`)]);
    await rig.until('2026-01-15T13:00:00Z');
    expect(rig.runs).toHaveLength(3);
    rig.edge.answer = () => 'fine again';
    await rig.service.change(job.id, 'enable', asker());
    await rig.until('2026-01-15T13:01:00Z');
    expect(rig.heard()).toHaveLength(1);
  });

  test('that goes on failing waits longer each time, though its slots come every minute', async () => {
    const rig = await makeJobsRig('2026-01-15T12:00:00Z');
    rig.edge.maxFailures = 9;
    rig.edge.answer = () => ({ failed: 'The model is down.' });
    await rig.service.add(ask({ every: '1m' }), asker());
    for (let minute = 1; minute <= 40; minute += 1) {
      await rig.until(new Date(Date.UTC(2026, 0, 15, 12, minute)).toISOString());
    }
    const at = rig.runs.map(({ messages: [{ message }] }) => message.receivedAt);
    const gaps = at.slice(1).map((time, index) => (time - (at[index] ?? 0)) / 60_000);
    expect(gaps.length).toBeLessThan(8);
    expect(gaps.at(-1)).toBeGreaterThan(gaps[0] ?? 0);
  });

  test('is not begun again while it runs, and runs beside its schedule when asked to', async () => {
    const rig = await makeJobsRig('2026-01-15T12:00:00Z');
    const held = Promise.withResolvers<string>();
    rig.edge.answer = () => held.promise;
    const { job } = await rig.service.add(ask({ every: '10m' }), asker());
    for (const minute of [10, 20, 30]) await rig.until(`2026-01-15T12:${minute}:00Z`);
    expect(rig.runs).toHaveLength(1);
    expect((await rig.jobs.get(job.id))?.last).toMatchObject({ how: 'skipped' });
    held.resolve('done at last');
    await rig.until('2026-01-15T12:31:00Z');
    rig.edge.answer = () => 'asked for';
    await rig.service.change(job.id, 'run', asker());
    await rig.clock.advance(10);
    expect(rig.runs).toHaveLength(2);
    expect(await rig.service.list(asker())).toMatchObject([
      { next: expect.stringContaining('13:40') },
    ]);
  });

  test('is stopped where it runs, and says nothing more, when it is switched off or removed', async () => {
    const rig = await makeJobsRig('2026-01-15T12:00:00Z');
    rig.edge.answer = () => new Promise(() => undefined);
    const { job } = await rig.service.add(ask({ every: '10m' }), asker());
    await rig.until('2026-01-15T12:10:00Z');
    await rig.service.change(job.id, 'disable', asker());
    await rig.clock.advance(10);
    expect(rig.runs.map(({ signal }) => signal.aborted)).toEqual([true]);
    rig.edge.answer = () => 'done';
    await rig.service.change(job.id, 'enable', asker());
    await rig.until('2026-01-15T12:20:00Z');
    expect(rig.heard()).toHaveLength(1);
  });

  test('runs once though the clock is put a day forward and back again, and others at their times', async () => {
    const rig = await makeJobsRig('2026-01-15T12:00:00Z');
    await rig.service.add(ask(DAILY), asker());
    await rig.service.add(say({ every: '1h' }, 'Stretch'), asker());
    await rig.clock.jump(86_400_000);
    await rig.clock.advance(1000);
    expect(rig.runs).toHaveLength(1);
    expect(rig.heard()).toHaveLength(2);
    await rig.clock.jump(-86_400_000);
    await rig.clock.advance(6000);
    await rig.until('2026-01-15T13:00:00Z');
    await rig.until('2026-01-15T14:00:00Z');
    // The hour that ran under the wrong clock does not run again.
    expect(rig.heard()).toHaveLength(1);
    await rig.until('2026-01-16T07:00:00Z');
    expect(rig.runs).toHaveLength(1);
    await rig.until('2026-01-17T07:00:00Z');
    expect(rig.runs).toHaveLength(2);
  });
});

test('an owner is not asked to allow a job that never comes to a run, or to none that can begin', async () => {
  const { service, edge } = await makeJobsRig('2026-01-15T12:00:00Z');
  const tool = createCron({ ...noSchedules(), check: (wish) => service.check(wish) });
  const seal = (cron: string, kind: 'ask' | 'workflow' = 'ask') =>
    tool.sealOf?.({ action: 'add', text: 'tea', kind, cron }, { workspace: '/none' });
  await expect(seal('61 8 * * *')).rejects.toThrow(/not a cron expression.*"0 8 \* \* 1-5"/s);
  await expect(seal('0 0 30 2 *')).rejects.toThrow('never runs');
  await expect(seal('0 8 * * 1-5')).resolves.toBe('');
  edge.checkWorkflow = (typed) => Promise.reject(new JobError(`There is no workflow "${typed}".`));
  const missing = 'There is no workflow "tea".';
  await expect(seal('0 8 * * 1-5', 'workflow')).rejects.toThrow(missing);
  const wish = { kind: 'workflow', text: 'tea', every: '1h' } as const;
  await expect(service.add(wish, asker())).rejects.toThrow(missing);
  expect(await service.list(asker())).toEqual([]);
});

describe('quiet hours', () => {
  test('keep notes to the owner too, and let them come at once by day', async () => {
    const rig = await makeJobsRig('2026-01-15T12:00:00Z');
    rig.edge.quiet = '22:00-07:00';
    rig.note('A door was down.');
    await rig.clock.advance(10);
    expect(rig.told).toEqual(['A door was down.']);
    await rig.until('2026-01-15T23:00:00Z');
    rig.note('Three messages came.');
    await rig.clock.advance(10);
    expect(rig.told).toHaveLength(1);
    await rig.until('2026-01-16T06:00:00Z');
    expect(rig.heard()).toEqual(['2026-01-16T06:00 **Notice, 00:00**\n\nThree messages came.']);
  });

  test('keep what comes up for their end, together, over a restart and a change of clocks', async () => {
    const rig = await makeJobsRig('2026-03-28T12:00:00Z');
    rig.edge.quiet = '22:00-07:00';
    await rig.service.add(ask({ at: '23:30', name: 'Late report' }), asker());
    await rig.service.add(ask({ at: '2026-03-29 05:00', name: 'Report' }), asker());
    await rig.until('2026-03-28T22:30:00Z');
    await rig.away('2026-03-29T02:30:00Z');
    await rig.until('2026-03-29T03:00:00Z');
    await rig.until('2026-03-29T04:59:00Z');
    expect(rig.heard()).toEqual([]);
    await rig.until('2026-03-29T05:00:00Z');
    expect(rig.heard()).toEqual([
      '2026-03-29T05:00 **Late report, 23:30**\n\ndone\n\n**Report, 05:00**\n\ndone',
    ]);
    await rig.away('2026-03-29T06:00:00Z');
    expect(rig.heard()).toEqual([]);
  });

  test('let a reminder through whose time the person chose in them, also late or each night', async () => {
    const rig = await makeJobsRig('2026-01-15T12:00:00Z');
    rig.edge.quiet = '22:00-07:00';
    await rig.service.add(say({ at: '23:00' }, 'Take the pills'), asker());
    await rig.service.add(say({ cron: '30 5 * * *' }, 'Bake the bread'), asker());
    await rig.until('2026-01-15T22:00:00Z');
    expect(rig.heard()).toEqual(['2026-01-15T22:00 Take the pills']);
    await rig.away('2026-01-16T04:45:00Z');
    expect(rig.heard()).toEqual([expect.stringMatching(/^2026-01-16T04:45 .*Bake the bread/s)]);
    const { job } = await rig.service.add(say({ every: '1d' }, 'Drink water'), asker());
    await rig.service.change(job.id, 'run', asker());
    await rig.until('2026-01-16T04:46:00Z');
    expect(rig.heard()).toEqual(['2026-01-16T04:45 Drink water']);
  });

  test('hold a reminder that only happens to come in them', async () => {
    const rig = await makeJobsRig('2026-01-15T16:30:00Z');
    rig.edge.quiet = '22:00-07:00';
    await rig.service.add(say({ every: '6h' }, 'Drink water'), asker());
    await rig.service.add(say({ cron: '15 */5 * * *' }, 'Stand up'), asker());
    await rig.service.add(say({ at: '21:30' }, 'Close the window'), asker());
    await rig.until('2026-01-15T19:15:00Z');
    expect(rig.heard()).toEqual(['2026-01-15T19:15 Stand up']);
    await rig.away('2026-01-16T00:30:00Z');
    await rig.until('2026-01-16T05:59:00Z');
    expect(rig.heard()).toEqual([]);
    await rig.until('2026-01-16T06:00:00Z');
    expect(rig.heard().join()).toMatch(
      /Close the window.*Drink water|Drink water.*Close the window/s,
    );
  });

  test('that are given up let out what they kept', async () => {
    const rig = await makeJobsRig('2026-01-15T22:00:00Z');
    rig.edge.quiet = '22:00-07:00';
    await rig.service.add(ask({ at: 'in 5m' }), asker());
    await rig.until('2026-01-15T22:05:00Z');
    expect(rig.heard()).toEqual([]);
    rig.edge.quiet = 'off';
    await rig.until('2026-01-15T22:07:00Z');
    expect(rig.heard()).toHaveLength(1);
  });
});

test('the heartbeat asks no model while its file asks for nothing, and then once per interval', async () => {
  const rig = await makeJobsRig('2026-01-15T12:00:00Z');
  rig.edge.answer = () => 'HEARTBEAT_OK, nothing to do.';
  rig.edge.heartbeatFile = '# Heartbeat\n\n<!-- Write\n- what to do -->\n- [ ]\n- [x] Old thing\n';
  for (let hour = 13; hour < 24; hour += 1) await rig.until(`2026-01-15T${hour}:00:00Z`);
  expect(rig.runs).toEqual([]);
  rig.edge.heartbeatFile += '- [ ] Watch the oven\n';
  for (const minute of ['00', '10', '20', '30', '40'])
    await rig.until(`2026-01-16T00:${minute}:00Z`);
  expect(rig.runs).toHaveLength(2);
  expect(rig.begun).toHaveLength(1);
  expect(rig.runs[0]?.messages[0].message.text).toContain('Watch the oven');
  expect(rig.runs[0]?.messages[0].message.sender).toMatchObject({
    rights: { schedule: 'never', rules: 'never', execute: 'ask' },
  });
  expect(rig.heard()).toEqual([]);
  rig.edge.answer = () => 'The oven is too hot.';
  await rig.until('2026-01-16T01:30:00Z');
  expect(rig.heard()).toEqual([expect.stringContaining('**Heartbeat**\n\nThe oven is too hot.')]);
});

test('the heartbeat begins no second look while one is under way', async () => {
  const rig = await makeJobsRig('2026-01-15T12:00:00Z');
  const held = Promise.withResolvers<string>();
  rig.edge.answer = () => held.promise;
  rig.edge.heartbeatFile = '- [ ] Watch the oven\n';
  for (const time of ['12:30', '13:00', '13:30', '14:00'])
    await rig.until(`2026-01-15T${time}:00Z`);
  held.resolve('HEARTBEAT_OK');
  await rig.clock.advance(5000);
  expect(rig.runs).toHaveLength(1);
});

test('others than an owner see and change only their own jobs', async () => {
  const rig = await makeJobsRig('2026-01-15T12:00:00Z');
  const { job } = await rig.service.add(say(DAILY), { kind: 'operator' });
  const owner = asker();
  if (owner.kind !== 'person') throw new Error('no person');
  const guest = { ...owner, person: { ...owner.person, role: 'trusted' as const } };
  expect(await rig.service.list(guest)).toEqual([]);
  await expect(rig.service.change(job.id, 'remove', guest)).rejects.toThrow(/no job/);
  await rig.service.add(say(DAILY, 'Mine'), guest);
  expect(await rig.service.list(guest)).toHaveLength(1);
  expect(await rig.service.list(owner)).toHaveLength(2);
  await rig.service.change(job.id, 'remove', owner);
  expect(await rig.service.list({ kind: 'operator' })).toHaveLength(1);
});

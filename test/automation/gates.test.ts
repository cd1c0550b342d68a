// Checks before the runs of jobs: an idle job asks no model, what a failed run missed comes again, and a
// check that keeps failing is reported once. And the history of a job.

import { describe, expect, test } from 'vitest';
import { createCron } from '../../src/features/schedule/cron-tool.ts';
import { type Look, readGate } from '../../src/features/schedule/rules/gate.ts';
import { parseHead } from '../../src/features/schedule/rules/job.ts';
import { noSchedules } from '../support/no-jobs.ts';
import { asker, makeJobsRig } from './rig.ts';

const START = '2026-01-15T12:00:00Z';
const JOB = { kind: 'ask', text: 'Read it', every: '10m', when: 'file notes.md' } as const;
const at = (minutes: number) =>
  `2026-01-15T${12 + Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, '0')}:00Z`;

/** A file whose content the test writes. */
function fileOf(content: string) {
  const file = { content, checks: 0 };
  const look = async ({
    gate,
  }: {
    readonly gate?: { readonly mark?: string | undefined } | undefined;
  }): Promise<Look> => {
    file.checks += 1;
    const mark = file.content;
    if (gate?.mark === undefined || gate.mark === mark) return { kind: 'closed', mark };
    return { kind: 'open', mark, found: { what: 'notes.md changed', text: '', isForeign: false } };
  };
  return { file, look };
}

describe('a check before each run', () => {
  test('keeps an idle job from the model and starts it once for each change', async () => {
    const rig = await makeJobsRig(START);
    const { file, look } = fileOf('one');
    rig.edge.look = look;
    const { job } = await rig.service.add(JOB, asker());
    await rig.clock.advance(0);
    expect(file.checks, 'the first look is at once').toBe(1);
    for (let minutes = 10; minutes <= 100; minutes += 10) await rig.until(at(minutes));
    expect(rig.runs).toEqual([]);
    expect(file.checks).toBe(11);
    const [quiet] = await rig.service.list(asker());
    expect(quiet?.line).toMatch(
      /every 10m when file notes\.md; next: .*; checked 10 times since the last run/,
    );
    file.content = 'two';
    await rig.until(at(110));
    await rig.until(at(120));
    expect(rig.runs.map(({ messages }) => messages[0].message.text)).toEqual([
      expect.stringMatching(/Read it\n\n\[The check before this run found: notes\.md changed\]$/),
    ]);
    expect((await rig.history.get(job.id))?.runs).toMatchObject([{ how: 'done' }]);
    expect(await rig.jobs.get(job.id)).toMatchObject({ gate: { mark: 'two', quiet: 1 } });
  });

  test('finds the same change again after the run failed, and after a kill between check and run', async () => {
    const rig = await makeJobsRig(START);
    const { file, look } = fileOf('one');
    rig.edge.look = look;
    await rig.service.add(JOB, asker());
    await rig.clock.advance(0);
    rig.edge.answer = () => ({ failed: 'the model is away' });
    file.content = 'two';
    await rig.until(at(10));
    expect(rig.runs).toHaveLength(1);
    rig.edge.answer = () => 'done';
    await rig.until(at(20));
    expect(rig.runs).toHaveLength(2);
    file.content = 'three';
    rig.edge.diesOnStart = true;
    await rig.until(at(30));
    rig.edge.diesOnStart = false;
    await rig.away(at(31));
    await rig.until(at(50));
    expect(rig.runs).toHaveLength(3);
  });

  test('is skipped where a person asks for a run', async () => {
    const rig = await makeJobsRig(START);
    const { job } = await rig.service.add(JOB, asker());
    await rig.clock.advance(0);
    await rig.service.change(job.id, 'run', asker());
    await rig.clock.advance(1000);
    expect(rig.runs).toHaveLength(1);
  });

  test('that is slow delays no other job', async () => {
    const rig = await makeJobsRig(START);
    const { promise, resolve } = Promise.withResolvers<Look>();
    rig.edge.look = () => promise;
    await rig.service.add(JOB, asker());
    await rig.service.add({ kind: 'say', text: 'Drink water', every: '10m' }, asker());
    await rig.until(at(10));
    expect(rig.heard()).toEqual(['2026-01-15T12:10 Drink water']);
    resolve({ kind: 'closed', mark: 'one' });
    await rig.until(at(20));
    expect(rig.runs).toEqual([]);
  });

  test('that keeps failing is reported once, and once when it works again', async () => {
    const rig = await makeJobsRig(START);
    const { look } = fileOf('one');
    rig.edge.look = look;
    await rig.service.add({ ...JOB, kind: 'say', text: 'New notes', name: 'Notes' }, asker());
    await rig.clock.advance(0);
    rig.edge.look = async () => ({ kind: 'failed', reason: 'there is no answer' });
    for (const minutes of [10, 20, 30, 40, 50, 60]) await rig.until(at(minutes));
    expect(rig.heard()).toEqual([
      expect.stringMatching(
        /^2026-01-15T12:30 .*Notes.*Its check failed: there is no answer\. It is checked again .*12:40|13:40/s,
      ),
    ]);
    expect((await rig.service.list(asker()))[0]?.line).toContain(
      'its check fails: there is no answer',
    );
    rig.edge.look = look;
    await rig.until(at(70));
    expect(rig.heard()).toEqual([expect.stringContaining('Its check works again.')]);
  });

  test('that cannot work is reported with the first look', async () => {
    const rig = await makeJobsRig(START);
    rig.edge.look = async () => ({ kind: 'failed', reason: 'there is no such page' });
    await rig.service.add(JOB, asker());
    await rig.clock.advance(1000);
    await rig.until(at(1));
    expect(rig.heard()).toEqual([
      expect.stringContaining('Its check failed: there is no such page.'),
    ]);
  });
});

test('the history keeps the last 50 runs, with what went wrong', async () => {
  const rig = await makeJobsRig(START);
  const { job } = await rig.service.add({ kind: 'say', text: 'Tick', every: '1m' }, asker());
  for (let minutes = 1; minutes <= 55; minutes += 1) await rig.until(at(minutes));
  const { runs = [] } = (await rig.history.get(job.id)) ?? {};
  expect(runs).toHaveLength(50);
  expect(new Date(runs[0]?.at ?? 0).toISOString()).toContain('12:55');
  await rig.service.change(job.id, 'remove', asker());
  expect(await rig.history.get(job.id)).toBeUndefined();
});

test('a check is written the same way everywhere, and a wrong one is explained', async () => {
  expect(readGate('program ./check.sh "two words" x')).toEqual({
    kind: 'program',
    argv: ['./check.sh', 'two words', 'x'],
  });
  expect(readGate('mail invoice acme')).toEqual({ kind: 'mail', words: ['invoice', 'acme'] });
  for (const wrong of ['url ftp://example.org', 'program', 'file', '08:00', 'moon full']) {
    expect(() => readGate(wrong)).toThrow(/is not a check that a job can wait for\. Write program/);
  }
  expect(parseHead('every 5m when url https://example.org/a:b : Say what is new')).toEqual({
    ...{
      kind: 'ask',
      every: 'every 5m',
      when: 'url https://example.org/a:b',
      text: 'Say what is new',
    },
  });
  expect(parseHead('say 0 8 * * 1-5 when program ./is-open.sh: Open')).toEqual({
    ...{ kind: 'say', cron: '0 8 * * 1-5', when: 'program ./is-open.sh', text: 'Open' },
  });
});

test('the tool needs the right of the check beside that of the job', () => {
  const tool = createCron(noSchedules());
  const wish = { action: 'add', kind: 'say', text: 'x', every: '5m' } as const;
  const needs = (when: string) => tool.needs?.({ ...wish, when }).map(({ access }) => access);
  expect(['program ./a', 'url https://a.b', 'file a', 'mail'].map(needs)).toEqual([
    ['execute'],
    ['web'],
    ['read'],
    ['read'],
  ]);
  expect(tool.urlOf?.({ ...wish, when: 'url https://a.b/c' })).toBe('https://a.b/c');
});

// What the calibrator keeps: each run once, the newest of each kind, and no advice before enough is known.

import { expect, it } from 'vitest';
import { Calibrator } from '../../src/features/subagents/learnt.ts';
import type { Execution } from '../../src/features/subagents/rules/calibration.ts';
import type { Config } from '../../src/kernel/config/config.ts';
import { memoryRows } from '../support/memory-host.ts';

const LIMITS = {
  subagents: { tokens: 100_000, maxDepth: 2 },
  defaults: { maxToolIterations: 20 },
};

function ran(at: number, more: Partial<Execution> = {}): Execution {
  return {
    ...{ id: `run-${at}`, group: 'task', type: 'answer', model: 'm', rounds: 1, maxRounds: 20 },
    ...{ tokens: 1000, maxTokens: 100_000, outcome: 'done', micros: 0, ms: 1, tools: 0 },
    ...{ depth: 1, at },
    ...more,
  };
}

it('keeps each run once and the newest alone, and advises by model from enough of them on', async () => {
  const settings = { enabled: true, minConfidence: 0.5, keep: 10 };
  const agents = { ...LIMITS, calibration: settings };
  const calibrator = new Calibrator(memoryRows(), () => ({ agents }) as Config);
  const advice = () => calibrator.advice('task', undefined, 'm');
  // A turn that is run again after a kill notes the same.
  for (let time = 0; time < 4; time += 1) await calibrator.note(ran(1));
  for (const at of [2, 3]) await calibrator.note(ran(at));
  for (const at of [4, 5, 6]) await calibrator.note(ran(at, { model: 'other', rounds: 15 }));
  expect(await advice()).toBeUndefined();
  await calibrator.note(ran(7));
  expect(await advice()).toMatchObject({ rounds: 3, confidence: 0.5 });
  for (let at = 10; at < 20; at += 1) await calibrator.note(ran(at, { rounds: 9 }));
  expect(await advice()).toMatchObject({ rounds: 11 });
  expect((await calibrator.lines()).join('\n')).toMatch(/of task, m: 10 runs \(answer\), 10 done/);
  settings.enabled = false;
  await calibrator.note(ran(30));
  expect([await advice(), await calibrator.lines()]).toEqual([undefined, []]);
});

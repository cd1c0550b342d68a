import { expect, it } from 'vitest';
import {
  goneBack,
  type MarkedPoint,
  type Plan,
  standingNote,
} from '../../src/features/plans/rules/plan.ts';

const plan = (...states: readonly ('pending' | 'doing' | 'done')[]): Plan => ({
  goal: 'Tea',
  steps: states.map((status, at) => ({ text: `step ${at + 1}`, status, after: [] })),
});
const marked = (done: string, then?: Plan): MarkedPoint => ({
  done,
  open: 'the rest',
  ...(then === undefined ? {} : { plan: then }),
});
const NOW = plan('done', 'done', 'doing');
const CHECKPOINTS = [marked('early', plan('doing', 'pending', 'pending')), marked('late')];

it('goes back to the plan as it was, and drops what was marked later', () => {
  const gone = goneBack({ plan: NOW, checkpoints: CHECKPOINTS }, { back: 2, reason: 'too hot' });
  expect(gone?.plan).toEqual(plan('doing', 'pending', 'pending'));
  expect(gone?.checkpoints.map(({ done }) => done)).toEqual(['early']);
});

it('keeps the plan of today where none was kept at the mark', () => {
  const gone = goneBack({ plan: NOW, checkpoints: CHECKPOINTS }, { back: 1, reason: 'too hot' });
  expect(gone?.plan).toEqual(NOW);
});

it('has nowhere to go beyond the oldest mark', () => {
  expect(
    goneBack({ plan: NOW, checkpoints: CHECKPOINTS }, { back: 3, reason: 'x' }),
  ).toBeUndefined();
  expect(goneBack({ plan: undefined, checkpoints: [] }, { back: 1, reason: 'x' })).toBeUndefined();
});

it('tells every way that was given up from a mark, the newest five', () => {
  let standing = { plan: NOW, checkpoints: [marked('early')] as readonly MarkedPoint[] };
  for (let way = 1; way <= 6; way += 1) {
    const gone = goneBack(standing, { back: 1, reason: `way ${way}` });
    standing = { plan: NOW, checkpoints: gone?.checkpoints ?? [] };
  }
  const note = standingNote(standing);
  expect(note).toContain('Given up from here: way 2 Given up from here: way 3');
  expect(note).toContain('way 6');
  expect(note).not.toContain('way 1');
});

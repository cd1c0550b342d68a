// Rows that earlier versions kept beside a question move into it, each once.

import { expect, it } from 'vitest';
import { createDecisions } from '../../src/kernel/questions/decisions.ts';
import { type OpenQuestion, openQuestionRows } from '../../src/kernel/questions/question-rows.ts';
import { jsonRows } from '../../src/kernel/rows.ts';
import { object } from '../../src/lib/json/json.ts';
import { createMemoryStore, memoryRows } from '../support/memory-host.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { placeOf } from './approvals-rig.ts';

type Earlier = { readonly state: string; readonly text: string };

it('what waits gets its payload, what was decided is kept, what was never asked is dropped', async () => {
  const state = createMemoryStore();
  const rows = memoryRows(state);
  const questions = openQuestionRows(rows);
  const open: OpenQuestion = {
    ...{ id: 'ask/1', round: 0, chat: placeOf('1'), markdown: 'Which?', subject: 'ask:1' },
    ...{ choices: [], approvers: 'owners', askedAt: 1, expiresAt: 2, isNumbered: true },
  };
  await questions.open.change(open.id, () => open);
  const earlier = rows({ ...jsonRows<Earlier>(object), scope: 'asks', prefix: 'ask:' });
  for (const [id, kind] of Object.entries({ 1: 'open', 2: 'answered', 3: 'open' }))
    await earlier.change(id, () => ({ state: kind, text: `text ${id}` }));
  const decisions = createDecisions(questions, createMovableClock());
  for (let times = 0; times < 2; times += 1) {
    await decisions.adopt(earlier, ({ state: kind, text }, id) => ({
      ...{ id: `ask/${id}`, subject: `ask:${id}`, session: undefined, payload: { text } },
      outcome: kind === 'open' ? undefined : kind,
    }));
  }
  expect(await earlier.list()).toEqual([]);
  expect(await decisions.known('ask')).toMatchObject([
    { id: 'ask/2', payload: { text: 'text 2' }, outcome: 'answered' },
    { id: 'ask/1', payload: { text: 'text 1' }, markdown: 'Which?' },
  ]);
});

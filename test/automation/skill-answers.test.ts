// How the answer of a capability is read: what real models put around the object they were asked for.

import { expect, it } from 'vitest';
import { z } from 'zod';
import { readAnswer } from '../../src/features/workflows/workflow-ask.ts';

const SCHEMA = z.fromJSONSchema({
  type: 'object',
  required: ['points'],
  properties: { points: { type: 'array', items: { type: 'string' } } },
});

it.each([
  ['a fence', '```json\n{"points":["milk"]}\n```'],
  ['braces in words', 'As {asked}: {"points":["milk"]} (in {one} object)'],
  ['a thought', '<think>{"points":["eggs"]}?</think>{"points":["milk"]}'],
  ['what was quoted before', 'You wrote {"points":["eggs"]}. Mine: {"points":["milk"]}'],
  ['an object of another kind behind', '{"points":["milk"]} {"sure":true}'],
  ['slips of the hand', "{points: ['milk'],}"],
])('is found beside %s', (_what, text) => {
  expect(readAnswer(text, SCHEMA)).toEqual({ kind: 'fits', value: { points: ['milk'] } });
});

it.each([
  ['none', 'milk', 'there is no JSON object in it'],
  ['a broken one', '{"points": [', 'it is not JSON'],
  ['another one', '{"points":"milk"}', /^points: /],
])('says what is wrong with %s', (_what, text, problem) => {
  const read = readAnswer(text, SCHEMA);
  expect(read.kind === 'fits' ? '' : read.problem).toMatch(problem);
});

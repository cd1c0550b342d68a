// What is left of an entry when words in it are forgotten: its place and its ids, and none of the words.

import { expect, it } from 'vitest';
import { callId, mediaId, turnId } from '../../src/kernel/message/ids.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';
import { forgetIn, forgetLines, holdsWords } from '../../src/kernel/sessions/rules/forgetting.ts';

const turn = turnId('telegram:1#1');
const id = callId('c1');
const media = [
  { media: mediaId('m1'), kind: 'document' as const, mimeType: 'text/plain', name: 'coco.txt' },
];
const usage = { turnId: turn, at: 1 };
const ENTRIES: readonly TranscriptEntry[] = [
  { role: 'user', ...usage, text: 'My parrot Cocó bites', media },
  {
    ...{ role: 'assistant', ...usage, text: 'I look.', model: 'm' },
    toolCalls: [{ id, name: 'recall', arguments: '{"query":"coco"}' }],
    thinking: [{ text: 'Coco?', signature: 's' }],
  },
  {
    role: 'tool',
    ...usage,
    callId: id,
    name: 'recall',
    status: 'ok',
    text: 'x',
    whole: 'COCO bites',
  },
  {
    ...{ role: 'summary', text: 'Facts: Coco is a parrot.\nOpen: call the vet.', at: 1 },
    ...{ untrusted: 'A page on parrots like Coco.', isForeign: true },
  },
  { role: 'turn_end', ...usage, outcome: 'answered', answers: ['Coco is well.'], throughSeq: 1 },
];

it('takes the words out of every kind of entry, and leaves the thread as it was', () => {
  const holds = holdsWords('coco') ?? expect.fail();
  const after = ENTRIES.map((entry) => forgetIn(entry, holds));
  expect(JSON.stringify(after)).not.toMatch(/coc[oó]/i);
  expect(after).toMatchObject([
    { role: 'user', turnId: turn, text: '[forgotten]', media: [{ media: 'm1' }] },
    { text: 'I look.', toolCalls: [{ id, name: 'recall', arguments: '{}' }], thinking: [] },
    { callId: id, status: 'ok', text: '[forgotten]' },
    { text: 'Open: call the vet.', untrusted: '[forgotten]', isForeign: true },
    { outcome: 'answered', answers: ['[forgotten]'] },
  ]);
  for (const entry of after) expect(entry && forgetIn(entry, holds)).toBeUndefined();
});

it('touches nothing that does not hold all of the words, and takes no words that say nothing', () => {
  const holds = holdsWords('coco vet') ?? expect.fail();
  expect(ENTRIES.map((entry) => forgetIn(entry, holds)).filter(Boolean)).toHaveLength(1);
  expect(forgetLines('- Coco\n- the vet of COCO\n', holds)).toBe('- Coco\n');
  for (const words of ['', ' ', 'a', 'of a', '"*"', '--'])
    expect(holdsWords(words)).toBeUndefined();
  expect(holdsWords('寿司')?.('東京で寿司')).toBe(true);
});

// What a summary must not lose, whatever the model that wrote it thought worth saying.

import { describe, expect, it } from 'vitest';
import { missingLines } from '../../src/agent/rules/compaction.ts';
import { turnId } from '../../src/kernel/message/ids.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';
import { cpuMs } from '../support/cpu-time.ts';

const said = (text: string): TranscriptEntry => ({
  role: 'user',
  turnId: turnId('c#1'),
  text,
  at: 0,
});

const linesFor = (text: string, summary = 'They talked.') =>
  missingLines(summary, [said(text)], 1000).slice(1);

describe('what a summary left out is quoted', () => {
  it.each([
    'look at https://example.org/a?b=c please',
    'write to anna.berg@example.org',
    'it lies in /srv/data/reports/q3.csv',
    'change src/agent/rules/turn.ts',
    'open notes.md',
    'the ticket is AB-1277',
    'call +49 151 1234567',
    'it cost 12,500 euros',
    'on 2026-03-05',
    'at 14:30',
    'set max_tokens',
    'rename readFile',
    'the dog is called "little bear"',
    'I met Anna Berg there',
    'we go with Ólafur then',
    'I’ll bring the cake along',
    'ich werde morgen anrufen',
    'я обещаю приехать',
  ])('%s', (text) => {
    expect(linesFor(text)).toEqual([`- person: ${text}`]);
  });

  it('and what it holds is not, in whatever spelling of case, blanks and digits', () => {
    expect(linesFor('it cost 12,500 euros', 'Cost: 12500 EUR')).toEqual([]);
    expect(linesFor('I met Anna Berg there', 'anna  berg was there')).toEqual([]);
    expect(linesFor('the ticket is AB-1277', 'Ticket AB-12777')).toHaveLength(1);
    expect(linesFor('so we just talked on and on')).toEqual([]);
  });

  it('within its room, the newest first, and not what others or tools wrote', () => {
    const entries = Array.from({ length: 40 }, (_, index) => said(`code ${index + 1000}`));
    const lines = missingLines('', entries, 300);
    expect(lines.join('\n').length).toBeLessThanOrEqual(300);
    expect(lines.at(-1)).toContain('1039');
    const foreign: TranscriptEntry = { ...said('code 4711'), isForeign: true } as TranscriptEntry;
    expect(missingLines('', [foreign], 300)).toEqual([]);
  });

  it('of a text made to be slow in no time worth a word', () => {
    const hostile = [
      'a'.repeat(50_000),
      '1 '.repeat(20_000),
      'A.'.repeat(20_000),
      '/'.repeat(20_000),
    ];
    const started = cpuMs();
    for (const text of hostile) linesFor(text);
    expect(cpuMs() - started).toBeLessThan(1000);
  });
});

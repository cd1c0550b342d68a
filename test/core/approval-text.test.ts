// What an owner sees of a call: nothing hidden, nothing that looks like something else, nothing that
// gets out of its block. Case X05.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { approvalText } from '../../src/features/approvals/rules/approval-text.ts';
import type { ToolAccess } from '../../src/kernel/access/rights.ts';

function textOf(values: Readonly<Record<string, unknown>>, access: ToolAccess = 'execute') {
  return approvalText({
    tool: 'runner',
    access,
    arguments: JSON.stringify(values),
    asker: '`Ann` on chat',
    isTainted: false,
    hours: 12,
  });
}

function shown(command: string, access: ToolAccess = 'execute'): string {
  const text = textOf({ command }, access) ?? '';
  const [, block = ''] = /\n`{3,}\n([\s\S]*)\n`{3,}\n/.exec(text) ?? [];
  return block;
}

const HOSTILE: readonly (readonly [string, string])[] = [
  ['text written backwards', 'ls \u202etxt.exe'],
  ['isolates', 'ls \u2066hidden\u2069'],
  ['letters without width', 'rm\u200b -rf\u200d /'],
  ['tag letters', 'ls \u{e0061}\u{e0062}'],
  ['a Cyrillic letter among Latin ones', 'sudo p\u0430ypal'],
  ['a Greek letter among Latin ones', 'curl \u03bfpen'],
  ['full-width letters', 'ｒｍ'],
  ['a blank that is none', 'ls\u00a0-l\u2003x'],
  ['a line end that is none', 'ls\u2028rm'],
  ['an escape sequence', 'ls \u001b[2K'],
  ['a carriage return', 'ls\rrm'],
  ['a filler', 'ls \u3164 \u2800'],
  ['a variation selector', 'ls \ufe0f'],
  ['half a character', 'ls \ud800'],
];

/** Asked for on 2026-01-15 at 13:00 in Berlin. */
const jobText = (wish: Readonly<Record<string, unknown>>) =>
  approvalText({
    ...{ tool: 'cron', access: 'schedule', asker: 'x', isTainted: false, hours: 12 },
    arguments: JSON.stringify({ action: 'add', ...wish }),
    at: Date.UTC(2026, 0, 15, 12),
    timeZone: 'Europe/Berlin',
  });

describe('a call as it is shown', () => {
  test.each(HOSTILE)('spells out %s', (_, command) => {
    const block = shown(command);
    expect(block).toMatch(/^[\n\x20-\x7e]+$/);
    expect(JSON.parse(block)).toEqual({ command });
  });

  test('says all of any command, and in plain letters only', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (command) => {
        const block = shown(command);
        if (block === '') return;
        expect(block).toMatch(/^[\n\x20-\x7e]+$/);
        expect(JSON.parse(block)).toEqual({ command });
      }),
    );
  });

  test('leaves what people write in their language to be read, where nothing is run', () => {
    expect(shown('Grüße an Zoë, 你好, привет', 'rules')).toContain('Grüße an Zoë, 你好, привет');
    expect(shown('to p\u0430ypal', 'send')).toContain('p\\u0430ypal');
    expect(shown('Grüße \u202e', 'send')).toContain('Grüße \\u202e');
  });

  test('shows blanks that would push the rest out of sight', () => {
    const block = shown(`ls${' '.repeat(40)}; rm`);
    expect(block).not.toMatch(/\S {3,}\S/);
    expect(JSON.parse(block)).toEqual({ command: `ls${' '.repeat(40)}; rm` });
  });

  test.each(['```', '````\n**Allowed**\n````', '`'.repeat(50)])(
    'keeps %j in its block',
    (command) => {
      const lines = (textOf({ command }) ?? '').split('\n');
      const fence = lines.find((line) => /^`{3,}$/.test(line)) ?? '';
      expect(lines.filter((line) => line === fence)).toHaveLength(2);
      expect(
        lines
          .join('\n')
          .match(/`+/g)
          ?.every((run) => run.length <= fence.length),
      ).toBe(true);
    },
  );

  test('is not shown at all where it does not fit', () => {
    expect(textOf({ command: 'x'.repeat(2001) })).toBeUndefined();
    expect(textOf({ command: '\u202e'.repeat(400) })).toBeUndefined();
    expect(textOf({ command: 'x'.repeat(1900) })).toContain('x'.repeat(1900));
  });

  test.each([
    ['a moment', { at: '14:10' }, '`Drink water`, today 14:10.'],
    ['the next day', { at: '08:00' }, '`Drink water`, tomorrow 08:00.'],
    ['another day', { at: '2026-01-31 08:00' }, '`Drink water`, 2026-01-31 08:00.'],
    [
      'another time zone',
      { at: '14:10', time_zone: 'Asia/Tokyo' },
      '`Drink water`, tomorrow 14:10 (Asia/Tokyo).',
    ],
    ['again and again', { every: '2h' }, '`Drink water`, every 2h.'],
    ['a title', { name: 'Health', at: 'in 20m' }, '`Health`: `Drink water`, today 13:20.'],
  ])('asks for a reminder in one sentence: %s', (_, more, words) => {
    expect(jobText({ kind: 'say', text: 'Drink water', ...more })).toBe(
      `**Set this reminder?** ${words} Asked by x.\n\nExpires in 12 hours.`,
    );
  });

  test.each([
    ['does more than say a text', { kind: 'ask', text: 'Clean up' }, 'job'],
    ['has a long text', { kind: 'say', text: 'x'.repeat(201) }, 'reminder'],
    ['has letters that are not seen', { kind: 'say', text: 'a\u202eb' }, 'reminder'],
    ['has a place', { kind: 'say', text: 'Hi', to: 'web' }, 'reminder'],
  ])('shows all of a job that %s', (_, wish, what) => {
    const text = jobText({ ...wish, every: '2h' }) ?? '';
    expect(text).toContain(`**Set this ${what}?** every 2h. Asked by x.

\`\`\`
{`);
    for (const key of Object.keys(wish)) expect(text).toContain(`"${key}"`);
  });

  test('shows a change of a job, and one that cannot be made, as any other call', () => {
    expect(jobText({ action: 'remove', id: 'j1' })).toContain('`cron` changes scheduled jobs.');
    expect(jobText({ kind: 'say', text: 'Hi', at: 'never' })).toContain('**May I?**');
  });

  test('warns where others may have wanted it', () => {
    const call = { tool: 't', access: 'send' as const, arguments: '{}', asker: 'x', hours: 12 };
    expect(approvalText({ ...call, isTainted: true })).toContain('words of others');
    expect(approvalText({ ...call, isTainted: false })).not.toContain('words of others');
  });
});

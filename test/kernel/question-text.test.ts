// What people see before they decide: nothing hidden, nothing that looks like something else, nothing that
// gets out of its block, and all of it, as a file where it is long. Case X05.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { wordsOf } from '../../src/features/approvals/approval-rows.ts';
import { jobWords } from '../../src/features/schedule/rules/job.ts';
import {
  argumentLines,
  asciiText,
  inlineCode,
  MAX_INLINE_CHARS,
  type Matter,
  questionText,
  shownText,
} from '../../src/kernel/questions/rules/question-text.ts';

const HOUR_MS = 3_600_000;
const asked = (matter: Partial<Matter>, hasFiles = true) =>
  questionText('Run it?', { asker: 'you', isTainted: false, ...matter }, HOUR_MS, hasFiles);

/** As a program is shown. */
function shown(command: string, escaping = asciiText): string {
  const { markdown } = asked({ text: escaping(command) });
  const [, block = ''] = /\n`{3,}\n([\s\S]*)\n`{3,}$/.exec(markdown) ?? [];
  return block;
}

/** What the escapes stand for. */
const unescaped = (text: string) =>
  text.replace(/\\u([0-9a-f]{4})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16)));

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

describe('the exact text of a question', () => {
  test.each(HOSTILE)('spells out %s', (_, command) => {
    const block = shown(command);
    expect(block).toMatch(/^[\n\x20-\x7e]+$/);
    expect(unescaped(block)).toBe(command);
  });

  test('says all of any command, and in plain letters only', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200, minLength: 1 }), (command) => {
        const block = shown(command);
        expect(block).toMatch(/^[\n\x20-\x7e]+$/);
        if (!command.includes('\\')) expect(unescaped(block)).toBe(command);
      }),
    );
  });

  test('leaves what people write in their language to be read, where nothing is run', () => {
    const plain = 'Grüße an Zoë, 你好, привет';
    expect(shown(plain, shownText)).toBe(plain);
    expect(shown('to p\u0430ypal', shownText)).toBe('to p\\u0430ypal');
    expect(shown('Grüße \u202e', shownText)).toBe('Grüße \\u202e');
  });

  test('shows blanks that would push the rest out of sight', () => {
    const block = shown(`ls${' '.repeat(40)}; rm`);
    expect(block).not.toMatch(/\S {3,}\S/);
    expect(unescaped(block)).toBe(`ls${' '.repeat(40)}; rm`);
  });

  test.each(['```', '````\n**Allowed**\n````', '`'.repeat(50)])(
    'keeps %j in its block',
    (command) => {
      const { markdown } = asked({ text: command });
      const lines = markdown.split('\n');
      const fence = lines.find((line) => /^`{3,}$/.test(line)) ?? '';
      expect(lines.filter((line) => line === fence)).toHaveLength(2);
      expect(markdown.match(/`+/g)?.every((run) => run.length <= fence.length)).toBe(true);
    },
  );

  test('comes as a file where it is long, and stands there whole where no file can be sent', () => {
    const text = `${'x'.repeat(MAX_INLINE_CHARS)}\nrm -rf`;
    const { markdown, file } = asked({ text, file: 'program.txt' });
    expect(file).toEqual({ name: 'program.txt', text });
    expect(markdown).not.toContain('rm -rf');
    expect(markdown).toContain('[...]');
    expect(markdown).toContain(`All of it, ${text.length} characters, is in the file program.txt.`);
    const whole = asked({ text }, false);
    expect(whole.file).toBeUndefined();
    expect(whole.markdown).toContain(text);
    expect(asked({ text: 'x'.repeat(MAX_INLINE_CHARS) }).file).toBeUndefined();
  });

  test('stays behind the decision, without what helped to make it', () => {
    const hint = 'A longer approval covers exactly this call.';
    const { markdown, tail } = asked({ text: 'npm test', hint });
    expect(markdown).toBe('Run it? Asked by you.\n\n```\nnpm test\n```');
    expect(tail).toBe(`Expires in 1 hour.\n${hint}`);
  });

  test('warns where untrusted content may be why it is asked', () => {
    expect(asked({ isTainted: true }).markdown).toContain('untrusted content');
    expect(asked({}).markdown).not.toContain('untrusted content');
  });
});

describe('a text within a sentence', () => {
  test.each(['npm test', 'git commit -m "x"'])('is %j as it is', (text) => {
    expect(inlineCode(text)).toBe(`\`${text}\``);
  });

  test.each(['two\nlines', 'a`b', 'a  b', 'a\u202eb', 'x'.repeat(201)])(
    'is never %j, which a code span shows otherwise',
    (text) => {
      expect(inlineCode(text)).toBeUndefined();
    },
  );
});

describe('a call of a tool that says nothing of itself', () => {
  test('is asked for by what it does, with its arguments a line each', () => {
    const call = {
      tool: 'runner',
      access: 'execute' as const,
      arguments: JSON.stringify({ title: 'Dentist', on: true, text: 'one\nto: eve', ids: [1, 2] }),
    };
    expect(wordsOf(call)).toEqual({
      sentence: 'Use `runner`, which runs a program?',
      text: 'title: Dentist\non: true\ntext:\n  one\n  to: eve\nids: [1,2]',
    });
  });

  test('shows a text that looks like something else as a text', () => {
    const looks = ['5', 'true', '', '{"a":1}', ' x', 'null'];
    for (const text of looks) {
      expect(argumentLines(JSON.stringify({ a: text }))).toBe(`a: ${JSON.stringify(text)}`);
    }
  });
});

/** Asked for on 2026-01-15 at 13:00 in Berlin. */
const job = (wish: Parameters<typeof jobWords>[0]) =>
  jobWords(wish, Date.UTC(2026, 0, 15, 12), 'Europe/Berlin');

describe('a job', () => {
  test.each([
    ['a moment', { at: '14:10' }, '`Drink water`, today 14:10?'],
    ['the next day', { at: '08:00' }, '`Drink water`, tomorrow 08:00?'],
    ['another day', { at: '2026-01-31 08:00' }, '`Drink water`, 2026-01-31 08:00?'],
    [
      'another time zone',
      { at: '14:10', time_zone: 'Asia/Tokyo' },
      '`Drink water`, tomorrow 14:10 (Asia/Tokyo)?',
    ],
    ['again and again', { every: '2h' }, '`Drink water`, every 2h?'],
    ['a title', { name: 'Health', at: 'in 20m' }, '`Health`: `Drink water`, today 13:20?'],
    ['a place', { every: '2h', to: 'web' }, '`Drink water`, every 2h, told on `web`?'],
  ])('that reminds is asked for in one sentence: %s', (_, more, words) => {
    const sentence = `Set the reminder ${words}`;
    expect(job({ kind: 'say', text: 'Drink water', ...more })).toEqual({ sentence });
  });

  test.each([
    [
      'is a task',
      { kind: 'ask', text: 'Clean up' },
      'Set the job `Clean up`, every 2h?',
      undefined,
    ],
    [
      'has a long text',
      { kind: 'say', text: 'x'.repeat(201) },
      'Set this reminder, every 2h?',
      'x'.repeat(201),
    ],
    [
      'has letters that are not seen',
      { kind: 'say', text: 'a\u202eb' },
      'Set this reminder, every 2h?',
      'a\u202eb',
    ],
  ] as const)('that %s is shown whole', (_, wish, sentence, text) => {
    expect(job({ ...wish, every: '2h' })).toMatchObject({
      sentence,
      ...(text === undefined ? {} : { text }),
    });
  });

  test('that cannot be made has no sentence', () => {
    expect(job({ kind: 'say', text: 'Hi', at: 'never' })).toBeUndefined();
  });
});

import { describe, expect, it } from 'vitest';
import { MAX_SPOKEN_CHARS, speakable } from '../../src/features/voice/rules/speakable.ts';
import { languageCode } from '../../src/lib/text/decode-text.ts';

describe('what is read aloud of an answer', () => {
  it.each([
    ['**Bold** and _soft_ and `code`', 'Bold and soft and code'],
    ['**bold** `x`', 'bold x'],
    [
      'Press **Ctrl** + **C**, [a](https://x.test) [b](https://y.test) \\* &amp;',
      'Press Ctrl + C, a b * &',
    ],
    ['# Title\n\nText.', 'Title.\nText.'],
    ['- one\n- two\n  - deep', 'one.\ntwo\ndeep.'],
    ['See [the page](https://x.test/a?b=c).', 'See the page.'],
    ['See https://x.test/a now', 'See the link in the text now'],
    ['Run:\n\n```\nls\n```\n\nthen\n\n```\npwd\n```', 'Run:\nThe code is in the text.\nthen'],
    ['Look:\n\n| a | b |\n|---|---|\n| 1 | 2 |', 'Look:\nThe table is in the text.'],
    ['> quoted\n\n---\n\nend', 'quoted\nend'],
    ['5 < 6 &amp; 7', '5 < 6 & 7'],
  ])('%j is %j', (markdown, said) => expect(speakable(markdown)).toBe(said));

  it('is nothing where there is nothing but code or tables', () => {
    expect(speakable('```\nls\n```')).toBe('');
    expect(speakable('')).toBe('');
  });

  it('ends at a sentence where it is long, and says so', () => {
    const said = speakable('This is a sentence. '.repeat(200));
    expect(said.length).toBeLessThanOrEqual(MAX_SPOKEN_CHARS);
    expect(said).toMatch(/a sentence\. The rest is in the text\.$/);
    expect(speakable('x'.repeat(5000)).length).toBeLessThanOrEqual(MAX_SPOKEN_CHARS);
  });
});

describe('the code of a language', () => {
  it.each([
    ['german', 'de'],
    ['English', 'en'],
    ['de', 'de'],
    ['pt-BR', 'pt'],
    ['', undefined],
    ['klingonese', undefined],
  ])('%j is %j', (named, code) => expect(languageCode(named)).toBe(code));
});

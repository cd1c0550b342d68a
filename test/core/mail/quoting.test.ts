// The quoted original below an answer: bounded, harmless, and cut again when it comes back.

import { expect, it } from 'vitest';
import { stripQuotes } from '../../../src/channels/email/rules/text.ts';
import { quoteAsHtml, quoteAsText, quoteOf } from '../../../src/channels/email/rules/threading.ts';

const MAIL = {
  address: 'anna@person.test',
  name: 'Anna',
  sentAt: Date.UTC(2026, 0, 15, 12, 5),
  text: 'Where do we eat?\n\n> Lunch?\n',
};
const quote = (changes: Partial<typeof MAIL> = {}) => {
  const made = quoteOf({ ...MAIL, ...changes });
  if (made === undefined) throw new Error('nothing to quote');
  return made;
};

it('looks as people know it', () => {
  expect(quoteAsText(quote())).toBe(
    [
      'On Thu, 15 Jan 2026 at 12:05 UTC, Anna <anna@person.test> wrote:',
      '> Where do we eat?',
      '>',
      '>> Lunch?',
    ].join('\n'),
  );
  expect(quoteAsHtml(quote())).toContain('>Where do we eat?<br>\n<br>\n&gt; Lunch?</blockquote>');
});

it('is words only in the HTML part', () => {
  const html = quoteAsHtml(quote({ name: '<b>A', text: '<img src=x onerror=alert(1)> & "so"' }));
  expect(html).not.toMatch(/<img|<b>/);
  expect(html).toContain('&lt;img');
});

it('is bounded and says so', () => {
  const text = quoteAsText(quote({ text: 'word '.repeat(5_000) }));
  expect(text.length).toBeLessThan(4_300);
  expect(text).toMatch(/^> \[truncated, [\d,]+ characters omitted\]$/m);
});

it('is nothing for a mail without text', () => {
  expect(quoteOf({ ...MAIL, text: ' \n ' })).toBeUndefined();
});

it.each(['Anna', '', 'A: "wrote" <x>', 'Änne'])('is cut when %j sends it back', (name) => {
  const answer = `At Luigi.\n\n${quoteAsText(quote({ name }))}`;
  expect(stripQuotes(answer).text).toBe('At Luigi.');
});

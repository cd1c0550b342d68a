import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addressesIn,
  messageIdsIn,
  parseHeaderBlock,
  readFrom,
  withoutComments,
} from '../../../src/channels/email/rules/address.ts';
import { parseAuthResults } from '../../../src/channels/email/rules/sender.ts';
import { stripQuotes } from '../../../src/channels/email/rules/text.ts';
import { baseSubject, replySubject } from '../../../src/channels/email/rules/threading.ts';
import { visibleText } from '../../../src/lib/text/cut.ts';
import { cpuMs, growthOf, PROPORTIONAL } from '../../support/cpu-time.ts';

/** Text rich in what mail syntax is made of. */
const odd = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '"',
        '\\\\',
        '(',
        ')',
        '<',
        '>',
        '@',
        ',',
        ';',
        ':',
        '=',
        '.',
        ' ',
        '\n',
        '> ',
      ),
      fc.constantFrom('a', 'b.test', 'Re:', 'On 1/1/26 x wrote:', '-- ', 'From: x', 'To: y', 'é'),
      fc.string({ unit: 'binary', maxLength: 5 }),
    ),
    { maxLength: 60 },
  )
  .map((parts) => parts.join(''));

describe('whatever a stranger writes', () => {
  it('the rules give an answer and never throw', () => {
    fc.assert(
      fc.property(odd, (text) => {
        withoutComments(text);
        messageIdsIn(text);
        addressesIn(text);
        parseAuthResults(text);
        parseHeaderBlock(text);
        replySubject(text);
        readFrom([{ name: 'from', value: text }]);
      }),
      { numRuns: 500 },
    );
  });

  it('an accepted From line is one plain address', () => {
    fc.assert(
      fc.property(odd, (text) => {
        const reading = readFrom([{ name: 'from', value: text }]);
        if (reading.kind === 'refused') return;
        expect(reading.from.address).toMatch(/^[^\s@"<>,;:()]+@[a-z0-9.-]+$/);
      }),
      { numRuns: 500 },
    );
  });

  it('cutting quotes adds nothing and keeps a mail that has words from becoming empty', () => {
    fc.assert(
      fc.property(odd, (text) => {
        const mail = visibleText(text);
        const { text: own, quoted = '' } = stripQuotes(mail);
        expect(mail).toContain(own);
        expect(mail.includes(quoted) || quoted.length <= mail.length).toBe(true);
        if (mail.trim() !== '') expect(own + quoted).not.toBe('');
      }),
      { numRuns: 500 },
    );
  });

  it('lines that could stand above a quote cost what their number costs', async () => {
    const work = (count: number) => {
      const begun = cpuMs();
      expect(stripQuotes('On 1/1/26, x wrote:\n'.repeat(count)).text).not.toBe('');
      return cpuMs() - begun;
    };
    expect(await growthOf(work, 4000)).toBeLessThan(PROPORTIONAL);
  });

  it('a subject has one mark, whatever it had before', () => {
    fc.assert(
      fc.property(odd, (text) => {
        expect(baseSubject(replySubject(text))).toBe(baseSubject(text));
        expect(replySubject(text)).not.toMatch(/[\r\n]/);
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    ['a From line', () => readFrom([{ name: 'from', value: `"${'\\\\"'.repeat(120_000)}` }])],
    ['a To line', () => addressesIn('a'.repeat(250_000))],
    ['results', () => parseAuthResults(`mx.test; ${'a="'.repeat(80_000)}`)],
    ['ids', () => messageIdsIn('<'.repeat(250_000))],
    ['blanks', () => visibleText(`${' '.repeat(250_000)}x`)],
    ['a subject', () => replySubject(`${'Re:'.repeat(80_000)}x`)],
  ])('%s of a quarter megabyte is read at once', (_, read) => {
    read();
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cardJson } from '../../../src/channels/lark/cards.ts';
import {
  beginningForLark,
  renderLark,
  splitForLark,
} from '../../../src/channels/lark/rules/markup.ts';
import { runsText } from '../../../src/lib/markup/writer.ts';
import { readCard } from '../../support/lark-server/cards.ts';

const LIMIT = 4000;
const whole = (markdown: string) => splitForLark(markdown, LIMIT).map(renderLark).join('\n\n');

describe('Markdown as a Lark card takes it', () => {
  test.each([
    ['**b** *i* ~~s~~ `c`', '**b** *i* ~~s~~ `c`'],
    ['# Title\n\ntext', '**Title**\n\ntext'],
    ['[x](https://a.b/(c))', '[x](https://a.b/%28c%29)'],
    ['<at id=all></at>', '&#60;at id=all&#62;&#60;/at&#62;'],
    ['2 * 3 * 4', '2 &#42; 3 &#42; 4'],
    [':OK: at 10:30', '&#58;OK: at 10:30'],
    ['\\# no title', '&#35; no title'],
    ['3. a\n4. b', '3&#46; a\n4&#46; b'],
    ['- a\n  - b', '• a\n\u00a0\u00a0\u00a0◦ b'],
    ['> q **r**\n\nafter', '> q **r**\n\nafter'],
    ['```js\na < b\n\n  c\n```', '```js\na < b\n\n  c\n```'],
    ['````\n```\n````', '````\n```\n````'],
    // Signs that would be shown are left out: inside their like, and between a sign and other signs.
    ['_*a*a_', '*aa*'],
    ['`.`*[*', '`.`&#91;'],
    ['`.`*x*', '`.`\u200b*x*'],
  ])('%j becomes %j', (markdown, expected) => {
    expect(whole(markdown)).toBe(expected);
  });

  test('every character arrives, whatever a model writes', () => {
    const sign = fc.constantFrom(...'ab1 *_~`[]()<>#-+.!|\\:&$\n"\u00e4\u4e2d😀');
    const text = fc.array(sign, { maxLength: 60 }).map((signs) => signs.join(''));
    const letters = (shown: string) => shown.replace(/[\s\u200b\u00a0]/g, '');
    fc.assert(
      fc.property(text, (markdown) => {
        for (const runs of splitForLark(markdown, LIMIT)) {
          if (runsText(runs).trim() === '') continue;
          const shown = readCard(cardJson({ runs })).text;
          expect(letters(shown)).toBe(letters(runsText(runs)));
        }
      }),
      { numRuns: 1000 },
    );
  });

  test('no part is more than a card holds, whatever its signs become', () => {
    for (const unit of ['*_', '中文', '😀', 'word ', '`a` ', '"\\"']) {
      const parts = splitForLark(unit.repeat(6000), LIMIT);
      expect(parts.length).toBeGreaterThan(1);
      for (const runs of parts) expect(Buffer.byteLength(cardJson({ runs }))).toBeLessThan(30_000);
      expect(
        parts
          .map((runs) => runsText(runs))
          .join('')
          .replace(/\s/g, '').length,
      ).toBe(runsText(splitForLark(unit.repeat(6000), 1e9)[0] ?? []).replace(/\s/g, '').length);
    }
  });

  test('a beginning fits and says that there is more', () => {
    const runs = beginningForLark('*'.repeat(3) + '中'.repeat(9000), LIMIT);
    expect(runsText(runs).endsWith('…')).toBe(true);
    expect(Buffer.byteLength(cardJson({ runs }))).toBeLessThan(30_000);
  });
});

// What is shown of results that are too long, and reading on in them.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { partOfResult } from '../../src/agent/rules/document-text.ts';
import { briefingOf } from '../../src/features/modes/rules/briefing.ts';
import { resultId } from '../../src/kernel/message/ids.ts';
import { cpuMs } from '../support/cpu-time.ts';

const ID = resultId('r12.3');
const briefing = (text: string, maxChars = 3000) => {
  const { head, body } = briefingOf(text, ID, maxChars);
  return `${head}\n${body}`;
};

const orders = Array.from({ length: 400 }, (_, n) => ({
  id: n + 1,
  total: (n % 50) * 2.5,
  state: n % 4 === 0 ? 'open' : 'paid',
  customer: { name: `Person ${n}`, 'e mail': `p${n}@example.org` },
}));
const json = JSON.stringify({ page: 1, note: 'x'.repeat(5000), orders });

describe('a briefing', () => {
  it('of JSON shows its keys, sizes, a sample and what can be counted', () => {
    const text = briefing(json);
    expect(text).toContain('result "r12.3": read_result with path');
    for (const line of [
      '$.page: 1',
      '$.orders: list of 400',
      '$.orders[0].customer["e mail"]: "p0@example.org"',
      'Facts about the 400 records of $.orders:',
      '  id: 1 to 400, sum 80200, 400 values',
      '  state: "paid" × 300, "open" × 100',
    ]) {
      expect(text).toContain(line);
    }
    expect(text).toMatch(/\$\.note: "x{10,}.*5,002 characters/);
    expect(briefing(orders.map((order) => JSON.stringify(order)).join('\n'))).toContain(
      'list of 400',
    );
  });

  it('of a table shows its columns with their values, and its first and last rows', () => {
    const rows = orders.map(({ id, total, state }) => `${id},"${state}, really",${total}`);
    const text = briefing(['id,state,total', ...rows].join('\n'));
    expect(text).toMatch(/^\[Table, .*401 lines/);
    expect(text).toContain('3 columns, 400 rows below the first line:\n  id: 1 to 400');
    expect(text).toContain('  state: "paid, really" × 300');
    expect(text).toContain('Beginning:\nid,state,total\n1,"open, really",0');
    expect(text).toMatch(/400,"paid, really",122.5$/);
  });

  it('of prose and of code shows an outline with line numbers, and both ends', () => {
    const prose = [
      '# Tea',
      'a',
      '## Water',
      'b',
      '## Leaves',
      ...orders.map(({ id }) => `line ${id}`),
    ];
    expect(briefing(prose.join('\n'), 1500)).toContain(
      'Headings:\n  1: # Tea\n  3: ## Water\n  5: ## Leaves',
    );
    const code = orders
      .map(({ id }) => `export function step${id}() {\n  return ${id};\n}`)
      .join('\n');
    const shown = briefing(code, 2000);
    expect(shown).toMatch(/^\[Code, /);
    expect(shown).toContain('  4: export function step2() {');
    expect(shown).toMatch(/End:[\s\S]*return 400;\n\}$/);
    const encoded = `start\n${'QUJD'.repeat(5000)}\nend of it`;
    expect(briefing(encoded)).toMatch(
      /start\n\[[\d,]+ characters of encoded data\][\s\S]*end of it$/,
    );
  });

  it('of anything keeps to its limit', () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 3000 }),
      fc.json({ maxDepth: 6 }),
      fc
        .array(fc.array(fc.string({ maxLength: 30 }), { maxLength: 9 }))
        .map((rows) => rows.map((cells) => cells.join(',')).join('\n')),
    );
    fc.assert(
      fc.property(text, fc.integer({ min: 200, max: 5000 }), (whole, maxChars) => {
        const { head, body } = briefingOf(whole, ID, maxChars);
        expect(head.length + 1 + body.length).toBeLessThanOrEqual(
          Math.max(maxChars, head.length + 1),
        );
        expect(body.isWellFormed()).toBe(true);
      }),
    );
  });

  it('takes no long time for a text that was made to be slow', () => {
    const slow = [
      `${'[{"a":'.repeat(100_000)}`,
      `${'='.repeat(500_000)} x`,
      'export '.repeat(140_000),
      '"'.repeat(900_000),
      `a,b\n${'x,'.repeat(20)}\n`.repeat(20_000),
    ];
    const started = cpuMs();
    for (const text of slow) briefing(text);
    expect(cpuMs() - started).toBeLessThan(3000);
  });
});

describe('reading on', () => {
  const part = (whole: string, wanted: Parameters<typeof partOfResult>[1], max = 1000) => {
    const found = partOfResult(whole, wanted, max);
    return found.kind === 'found' ? `${found.about}\n${found.text}` : `wrong: ${found.problem}`;
  };

  it.each([
    ['orders[2].customer.name', '"Person 2"'],
    ['$.orders[-1].id', '400'],
    ['orders[1].customer["e mail"]', '"p1@example.org"'],
    ['orders[398:].id', 'wrong: there is no .id at $.orders[398:]; there is a list of 2'],
    [
      'orders[9].constructor',
      'wrong: there is no .constructor at $.orders[9]; there is .id .total',
    ],
    ['__proto__', 'wrong: there is no __proto__'],
    ['orders[900]', 'wrong: there is no [900]'],
    ['orders[?(@.x)]', 'wrong: the path cannot be read at'],
  ])('finds what stands at %s', (path, expected) => {
    expect(part(json, { path })).toContain(expected);
  });

  it('shows the shape of a value that is too long, and searches in it', () => {
    expect(part(json, { path: 'orders' })).toMatch(
      /its shape.*orders\[0:20\]\n.*\n\$: list of 400/s,
    );
    expect(part(json, { path: 'orders[0:50].customer', search: 'x' })).toMatch(/^wrong/);
    expect(part(json, { path: 'orders[30:40]', search: 'PERSON 35' })).toContain(
      '"name": "Person 35"',
    );
    expect(part('plain', { path: 'a' })).toContain('it is not JSON');
  });

  it('gives lines, characters and the places of words, and says how to go on', () => {
    const text = orders.map(({ id, state }) => `line ${id} ${state}`).join('\n');
    expect(part(text, { lines: '2:3' })).toBe('lines 2 to 3 of 400\nline 2 paid\nline 3 paid');
    expect(part(text, { lines: '500:' })).toBe('wrong: it has only 400 lines');
    expect(part(text, { search: 'LINE 39 ' })).toBe(
      '1 places found, 1 shown, each with its line\n39: line 39 paid',
    );
    expect(part(text, { search: 'open' }, 200)).toMatch(/^100 places found, 1\d shown/);
    expect(part(json, { search: '"id":77,' })).toMatch(/character [\d,]+ of the line.*"id":77,/s);
    // Going on where it says leads through the whole text, however it began.
    let read = '';
    let from: number | undefined = 0;
    while (from !== undefined) {
      const found = partOfResult(text, { from }, 300);
      if (found.kind === 'wrong') throw new Error(found.problem);
      read += found.text;
      from = /from: (\d+)/.exec(found.about)?.[1] as never;
      from = from === undefined ? undefined : Number(from);
    }
    expect(read).toBe(text);
  });

  it('is bounded whatever is asked', () => {
    const wanted = fc.record(
      {
        lines: fc.constantFrom('1:', '3', ':900', 'x'),
        from: fc.nat(70_000),
        path: fc.constantFrom('$', 'orders', 'note', 'orders[0:300]', 'page.x'),
        search: fc.constantFrom('e', '"', 'person'),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(wanted, fc.integer({ min: 400, max: 4000 }), (asked, maxChars) => {
        const found = partOfResult(json, asked, maxChars);
        if (found.kind === 'found') expect(found.text.length).toBeLessThanOrEqual(maxChars);
        else expect(found.problem.length).toBeLessThan(800);
      }),
    );
  });
});

// What others wrote, as the model gets it: whatever it holds, it stays inside its block.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { userId } from '../../src/kernel/message/ids.ts';
import {
  neutralLines,
  unwrapped,
  withCurrentMarks,
  withoutUntrusted,
  wrapUntrusted,
} from '../../src/kernel/message/untrusted.ts';
import { wordsOf } from '../../src/kernel/turns/rules/coalesce.ts';
import { cpuMs } from '../support/cpu-time.ts';

const BOUNDARY = '0123456789abcdef';
const wrap = (text: string, author?: string) =>
  wrapUntrusted('a mail', [{ text, ...(author === undefined ? {} : { author }) }], BOUNDARY);

/** Pieces that attacks are made of, and everything else. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        ...['\n', '\r', '\r\n', '\u2028', '\u0085', '\v', ' ', '> ', '[', ']', '<', '|', '>', '/'],
        ...[BOUNDARY, BOUNDARY.slice(0, 8), BOUNDARY.slice(8), 'end of untrusted', ': '],
        ...['[end of untrusted ', '[untrusted ', 'im_start', '<|', '<\u200b|', 's>'],
        ...[
          'INST',
          '[/INST]',
          '<<SYS>>',
          '</s>',
          '<think>',
          'system',
          'Human:',
          '\u202e',
          '\u{e0041}',
        ],
        ...['\u200d', '\u200d\u200d', '\ufe0f', '\ud800', '\u0000', '\u001b[2J', '👩‍💻', 'é', 'न'],
      ),
      fc.string({ unit: 'binary', maxLength: 8 }),
    ),
    { maxLength: 40 },
  )
  .map((parts) => parts.join(''));

describe('a wrapped text', () => {
  it('begins and ends with our lines, and cannot write one of them', () => {
    fc.assert(
      fc.property(hostile, hostile, (text, author) => {
        const lines = wrap(text, author).split(/\r\n|[\n\v\f\r\u0085\u2028\u2029]/);
        const [first = '', ...rest] = lines;
        const last = rest.pop();
        expect(first).toMatch(/^\[untrusted 0123456789abcdef: a mail, written by [^[\]<>|]+\]$/);
        expect(last).toBe('[end of untrusted 0123456789abcdef]');
        for (const line of rest) expect(line).toMatch(/^>/);
        expect(wrap(text, author).split(BOUNDARY)).toHaveLength(3);
      }),
      { numRuns: 2000 },
    );
  });

  it('holds no sign of a chat template and nothing that is not seen', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const inside = neutralLines(text).join('\n');
        expect(inside).not.toMatch(
          /<[|\uff5c]|<\/?(?:s|think|tool_call|system)>|\[\/?INST\]|<<SYS>>/i,
        );
        expect(inside).not.toMatch(/(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}]/u);
        expect(inside).not.toMatch(/(?:\u200c|\u200d|\ufe0f){3}/);
      }),
      { numRuns: 2000 },
    );
  });

  it('names the author on every line where several wrote', () => {
    const wrapped = wrapUntrusted(
      'a thread',
      [
        { author: 'Ann', text: 'one\nBob: I agree' },
        { author: 'Bob\n> Ann', text: 'no' },
        { text: 'who am I' },
      ],
      BOUNDARY,
    );
    expect(wrapped.split('\n').slice(1, -1)).toEqual([
      '> Ann: one',
      '> Ann: Bob: I agree',
      '> Bob Ann: no',
      '> somebody: who am I',
    ]);
  });

  it('leaves an ordinary text as it is', () => {
    const texts = [
      'Dear Ann,\n\nif a < b and c > d, then x[0] is 5 €.\n\tIndented\n- list\n**bold** `code`',
      'Zażółć gęślą jaźń, 你好，世界, こんにちは, مرحبا بالعالم, नमस्ते, שלום',
      '👩‍💻 ❤️ 👍🏽 🇩🇪 می‌خواهم क्‍ष',
      '<b>bold</b> <script> <!-- --> &amp; a|b |> f <- g [link](https://example.org)',
    ];
    for (const text of texts) expect(neutralLines(text).join('\n')).toBe(text);
  });

  it('takes time in proportion to its length', () => {
    const startedAt = cpuMs();
    for (const piece of ['<', '<</', '[/', '\u200d', '\u2028', '<s', 'a\u200d', ' ']) {
      neutralLines(piece.repeat(200_000));
    }
    expect(cpuMs() - startedAt).toBeLessThan(3000);
  });
});

it('a block that an earlier version marked is understood, and shown with the mark of today', () => {
  const marked = wrapUntrusted('a page', [{ text: 'first\nsecond' }], BOUNDARY);
  const earlier = marked.replaceAll('untrusted', 'words of others');
  expect(earlier).toContain(`[words of others ${BOUNDARY}: a page]`);
  expect(withCurrentMarks(earlier)).toBe(marked);
  for (const block of [marked, earlier]) {
    expect(unwrapped(block)).toBe('first\nsecond');
    expect(withoutUntrusted(`before\n${block}\nbehind`)).toBe('before\n \nbehind');
  }
  const typed = '[words of others are welcome]';
  expect(withCurrentMarks(typed)).toBe(typed);
});

describe('the text of a tokenizer', () => {
  it.each([
    '<|im_start|>system',
    '<|im_end|>',
    '<|system|>',
    '<|endoftext|>',
    '<|begin_of_text|>',
    '<|start_header_id|>system<|end_header_id|>',
    '<|eot_id|>',
    '<|eom_id|>',
    '<|python_tag|>',
    '<|START_OF_TURN_TOKEN|>',
    '<|channel|>analysis<|message|>',
    '<|fim_prefix|>',
    '<|tool_call|>',
    '<｜begin▁of▁sentence｜>',
    '<｜User｜>',
    '<｜Assistant｜>',
    '<｜tool▁calls▁begin｜>',
    '<s>',
    '</s>',
    '<bos>',
    '<eos>',
    '<pad>',
    '<unk>',
    '<start_of_turn>model',
    '<end_of_turn>',
    '[INST]',
    '[/INST]',
    '[inst]',
    '<<SYS>>',
    '<</SYS>>',
    '[TOOL_CALLS]',
    '[AVAILABLE_TOOLS]',
    '[/AVAILABLE_TOOLS]',
    '[TOOL_RESULTS]',
    '[SYSTEM_PROMPT]',
    '[gMASK]',
    '<sop>',
    '<system>',
    '</system>',
    '<user>',
    '<assistant>',
    '<tool_call>',
    '</tool_call>',
    '<tool_response>',
    '<function_calls>',
    '<invoke name="x">',
    '<function_results>',
    '<parameter name="y">',
    '<think>',
    '</think>',
    '<thinking>',
    '<human>',
    '<bot>',
    '<S>',
    '<|\u200bim_start|>',
    '<\u200b|im_start|>',
    '<\u00ad|im_start|>',
    '<\u{e0041}|im_end|>',
    '<\u2060/s>',
    '[\u200bINST]',
    '<\ufe00|im_start|>',
    '<th\u200bink>',
    '\u202e>|trats_mi|<\u202c<|im_start|>',
  ])('loses its form: %j', (token) => {
    const shown = neutralLines(`a ${token} b`).join('\n');
    const bare = token.replace(/\p{Cf}|\ufe00/gu, '');
    expect(shown).not.toContain(bare);
    expect(shown.replace(/[<[] /g, (open) => open.trim())).toContain(bare.slice(1, -1));
  });
});

describe('a message of the person', () => {
  const words = fc.string({ unit: 'binary' }).filter((text) => !text.startsWith('[forwarded'));
  const person = { kind: 'person', id: userId('1'), verified: 'verified' } as const;

  it('stays what the person wrote, letter by letter, behind what it quotes', () => {
    fc.assert(
      fc.property(words, hostile, (text, quote) => {
        expect(wordsOf({ text, sender: person }, () => BOUNDARY)).toBe(text);
        const both = wordsOf({ text, sender: person, quoted: { text: quote } }, () => BOUNDARY);
        expect(both.endsWith(`\n[end of untrusted ${BOUNDARY}]\n\n${text}`)).toBe(true);
      }),
    );
  });

  it.each([
    ['[forwarded]\nnews', /forwarded by the person: |forwarded by the person\]\n> news\n/],
    ['[forwarded from Eve]\ndo it', /forwarded by the person, written by Eve\]\n> do it\n/],
    ['[forwarded from Eve\n]: x]\ndo it', /forwarded by the person\]\n> \[forwarded from Eve\n> /],
  ])('passed on is untrusted: %j', (text, shown) => {
    expect(wordsOf({ text, sender: person }, () => BOUNDARY)).toMatch(shown);
  });

  it('from a sender whom nothing verifies is untrusted', () => {
    const sender = { ...person, verified: 'unverified' } as const;
    expect(wordsOf({ text: 'hello', sender }, () => BOUNDARY)).toBe(
      `[untrusted ${BOUNDARY}: sent by an unverified sender]\n> hello\n` +
        `[end of untrusted ${BOUNDARY}]`,
    );
  });
});

// Answers of models that write their calls into the text: what the person is told, what is called.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Reading } from '../../src/providers/text-tools/answer-parts.ts';
import { AnswerReader } from '../../src/providers/text-tools/answer-reader.ts';
import { cpuMs } from '../support/cpu-time.ts';
import { GOOD_ANSWERS } from '../support/good-answers.ts';

type Model = ConstructorParameters<typeof AnswerReader>[1];

const offered = new Set(['read_file', 'time']);
const ASKED: Reading = { offered, mayCall: true, isSpoken: true, isAsked: true };
const NATIVE: Reading = { offered, mayCall: true, isSpoken: false, isAsked: false };
const PLAIN_MODEL: Model = { name: 'ollama/some-7b', textDialect: 'json' };

type Options = { readonly reading?: Reading; readonly model?: Model; readonly isCut?: boolean };

function read(pieces: readonly string[], options: Options = {}) {
  const { reading = ASKED, model = PLAIN_MODEL, isCut = false } = options;
  const reader = new AnswerReader(reading, model);
  let text = '';
  const calls: { readonly name: string; readonly args: unknown }[] = [];
  for (const piece of pieces) {
    const read = reader.push(piece);
    text += read.text;
    calls.push(...read.calls);
  }
  const { problem, instead, ...last } = reader.end(isCut);
  return { text: text + last.text, calls: [...calls, ...last.calls], problem, instead };
}

/** What is found where nothing is wrong. */
function found(text: string, options: Options = {}) {
  const { problem, ...rest } = read([text], options);
  expect(problem).toBeUndefined();
  return { text: rest.text, calls: rest.calls.map(({ name, args }) => [name, args]) };
}

const CALL = '{"tool": "read_file", "args": {"path": "a.md"}}';
const CALLED = [['read_file', { path: 'a.md' }]];
const DONE = '{"done": true, "response": "Hello **you**\\nand \\u00e9\\ud83d\\ude00"}';
const RESPONSE = 'Hello **you**\nand é😀';

describe('the protocol of calls in text', () => {
  it.each([
    [CALL, '', CALLED],
    [`\n  ${CALL}\n`, '', CALLED],
    [`\`\`\`json\n${CALL}\n\`\`\``, '', CALLED],
    [`\`\`\`\n${CALL}\n\`\`\`\n`, '', CALLED],
    [`I look it up.\n${CALL}`, 'I look it up.\n', CALLED],
    [`I look it up.\n\n\`\`\`json\n${CALL}\n\`\`\``, 'I look it up.\n\n', CALLED],
    [`Sure! ${CALL}`, 'Sure! ', CALLED],
    [`${CALL}\nI wait for it.`, 'I wait for it.', CALLED],
    [`First.\n${CALL}\nThen wait.`, 'First.\nThen wait.', CALLED],
    [`${CALL}\n{"tool":"time","args":{}}`, '', [...CALLED, ['time', {}]]],
    [`[${CALL}, {"tool":"time","args":{}}]`, '', [...CALLED, ['time', {}]]],
    [`\`\`\`json\n${CALL}\n{"tool":"time","args":{}}\n\`\`\``, '', [...CALLED, ['time', {}]]],
    [`\`\`\`json\n${CALL}\n\`\`\`\n\`\`\`json\n${CALL}\n\`\`\``, '', [...CALLED, ...CALLED]],
    ['{"tool": "read_file", "args": "{\\"path\\": \\"a.md\\"}"}', '', CALLED],
    ['{"tool": "read_file", "arguments": {"path": "a.md",},}', '', CALLED],
    ['{"args": {"path": "a.md"}, "tool": "read_file"}', '', CALLED],
    ['{"thought": "hm", "tool": "read_file", "args": {"path": "a.md"}}', '', CALLED],
    ['{"tool": "read_file", "args": {"path": "a.md"}', '', CALLED],
    ['{"name": "read_file", "arguments": {"path": "a.md"}}', '', CALLED],
    ['{"function": "read_file", "parameters": {"path": "a.md"}}', '', CALLED],
    ['{"tool": "unheard_of", "args": {}}', '', [['unheard_of', {}]]],
    [DONE, RESPONSE, []],
    [`\`\`\`json\n${DONE}\n\`\`\``, RESPONSE, []],
    [`\`\`\`json\n${DONE}\n\`\`\`\nBye.`, `${RESPONSE}\n\nBye.`, []],
    [`Here it is:\n${DONE}`, `Here it is:\n${RESPONSE}`, []],
    ['{"response": "later", "done": true}', 'later', []],
    [
      '{"done": true, "response": "a "quoted" word, and\na line"}',
      'a "quoted" word, and\na line',
      [],
    ],
    ['{"done": true, "response": "He said "hi", then left"}', 'He said "hi", then left', []],
    ['{"done": true, "response": "C:\\dir \\(x\\)"}', 'C:\\dir \\(x\\)', []],
    [
      '{"done": true, "response": "```js\\nlet a = {\\"tool\\": 1};\\n```"}',
      '```js\nlet a = {"tool": 1};\n```',
      [],
    ],
    ['{"done": true, "response": {"a": 1}}', '{\n  "a": 1\n}', []],
    [
      `${CALL}\n{"tool_result": {"tool": "read_file", "success": true, "data": "x"}}\nIt says x.`,
      '',
      CALLED,
    ],
    [`${CALL}\n${DONE}`, '', CALLED],
    [`${DONE}\n${CALL}`, RESPONSE, CALLED],
  ])('%j is %j and the calls %j', (answer, text, calls) => {
    expect(found(answer)).toEqual({ text, calls });
  });

  it.each([
    ['{"foo": 1}', 'neither', '', '{"foo": 1}'],
    ['{"action": "read_file", "action_input": "a"}', 'neither', '', ''],
    ['{"action": "say", "answer": "Hi"}', 'neither', '', 'Hi'],
    ['{"tool": "read_file"}', 'args', '', ''],
    ['{"tool": "read_file", "args": [1]}', 'args', '', ''],
    ['{"done": true}', 'response', '', ''],
    ['{"tool": "read_file", "args": {"path": "a', 'cannot be read', '', ''],
    [
      `It is {"tool": "read_file", "args": {}} that I write.`,
      'mixes a call',
      'It is {"tool": "read_file", "args": {}} that I write.',
      '',
    ],
    [
      `So:\n\`\`\`json\n${CALL}\n\`\`\`\nThat is how.`,
      'mixes a call',
      `So:\n\`\`\`json\n${CALL}\n\`\`\`\nThat is how.`,
      '',
    ],
    [
      '{"tool_result": {"tool": "time", "data": "noon"}}\nIt is noon.',
      'contains a tool result',
      'It is noon.',
      '',
    ],
  ])(
    '%j goes back to the model (%s), and is shown as %j if it insists',
    (answer, why, text, instead) => {
      const { problem, ...rest } = read([answer]);
      expect(problem).toContain(why);
      expect(rest).toEqual({ text, calls: [], instead });
    },
  );
});

describe('dialects', () => {
  const deepseek: Model = { name: 'ollama/deepseek-r1:14b', textDialect: 'deepseek' };
  it.each([
    ['<tool_call>\n{"name": "read_file", "arguments": {"path": "a.md"}}\n</tool_call>', ''],
    ['<tool_call>\n{"name": "read_file", "arguments": {"path": "a.md"}}', ''],
    [
      'Let me see.\n<tool_call>{"name": "read_file", "arguments": {"path": "a.md"}}</tool_call>\n',
      'Let me see.\n',
    ],
    [
      '<tool_call>\n<function=read_file>\n<parameter=path>\na.md\n</parameter>\n</function>\n</tool_call>',
      '',
    ],
    ['<function=read_file>\n<parameter=path>\na.md\n</parameter>\n</function>', ''],
    ['<function=read_file>{"path": "a.md"}</function>', ''],
    [
      '<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.md</arg_value>\n</tool_call>',
      '',
    ],
    ['<|python_tag|>{"name": "read_file", "parameters": {"path": "a.md"}}', ''],
    ['<|python_tag|>read_file.call(path="a.md")', ''],
    ['{"name": "read_file", "parameters": {"path": "a.md"}}', ''],
    [
      '{"type": "function", "function": {"name": "read_file", "arguments": "{\\"path\\": \\"a.md\\"}"}}',
      '',
    ],
    ['```json\n{"name": "read_file", "arguments": {"path": "a.md"}}\n```', ''],
    ["[read_file(path='a.md')]", ''],
    ['<|python_start|>[read_file(path="a.md")]<|python_end|>', ''],
    [
      '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n{"path": "a.md"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
      '',
    ],
    [
      'Yes.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": "a.md"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
      'Yes.',
    ],
    ['[TOOL_CALLS] [{"name": "read_file", "arguments": {"path": "a.md"}}]', ''],
    ['[TOOL_CALLS]read_file[ARGS]{"path": "a.md"}', ''],
    ['[TOOL_CALLS]read_file[CALL_ID]abc123[ARGS]{"path": "a.md"}', ''],
    ['<|tool_call|>[{"name": "read_file", "arguments": {"path": "a.md"}}]', ''],
  ])('%j is a call of an offered tool, by any model', (answer, text) => {
    expect(found(answer, { reading: NATIVE })).toEqual({ text, calls: CALLED });
    expect(found(answer)).toEqual({ text, calls: CALLED });
  });

  it('of the family itself is a call also of a tool that is not there, so that the model is told', () => {
    const answer =
      '<｜tool▁call▁begin｜>function<｜tool▁sep｜>no_such\n```json\n{}\n```<｜tool▁call▁end｜>';
    expect(found(answer, { reading: NATIVE, model: deepseek }).calls).toEqual([['no_such', {}]]);
    expect(found(answer, { reading: NATIVE })).toEqual({ text: answer, calls: [] });
  });

  it('is all that counts where the model goes on with a result of its own', () => {
    const call = '<tool_call>{"name": "read_file", "arguments": {"path": "a.md"}}</tool_call>';
    const answer = `${call}\n<tool_response>\nx\n</tool_response>\nIt says x.`;
    expect(found(answer, { reading: NATIVE })).toEqual({ text: '', calls: CALLED });
  });

  it('of the family itself goes back to the model where it cannot be read', () => {
    const answer = '<｜tool▁calls▁begin｜>{nonsense<｜tool▁calls▁end｜>';
    const { problem, text } = read([answer], { reading: NATIVE, model: deepseek });
    expect([problem, text]).toEqual([expect.stringContaining('cannot be read'), '']);
  });
});

describe('an ordinary answer', () => {
  it.each(GOOD_ANSWERS)('comes out as it was written: %j', (answer) => {
    for (const name of ['x', 'qwen3-8b', 'llama3.1', 'mistral-small', 'deepseek-r1', 'phi4']) {
      for (const reading of [ASKED, NATIVE]) {
        const model = { name: `ollama/${name}`, textDialect: 'json' as const };
        expect(found(answer, { reading, model })).toEqual({ text: answer, calls: [] });
      }
    }
    const inside = JSON.stringify({ done: true, response: answer });
    expect(found(inside)).toEqual({ text: answer, calls: [] });
  });
});

describe('any text', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      ...[
        '{"tool"',
        ': "read_file", "args": {}}',
        CALL,
        DONE,
        '{"done": true, "response": "',
        '"}',
      ],
      ...['```json\n', '```', '`', '\n', '\n\n', ' ', '{', '}', '[', ']', '"', '\\', ',', ':', '<'],
      ...['<tool_call>', '</tool_call>', '<function=time>', '</function>', '[TOOL_CALLS]'],
      ...['<|python_tag|>', '[read_file(', ')]', '{"tool_result"', 'prose', 'é', '😀', '{"name"'],
    ),
    fc.string({ unit: 'grapheme', maxLength: 5 }),
  );
  const texts = fc.array(piece, { maxLength: 25 }).map((pieces) => pieces.join(''));

  it('is read alike however it is cut, without a throw', () => {
    fc.assert(
      fc.property(
        texts,
        fc.array(fc.nat(), { maxLength: 12 }),
        fc.boolean(),
        (text, cuts, isCut) => {
          const chars = [...text];
          const borders = cuts.map((cut) => cut % (chars.length + 1)).toSorted((a, b) => a - b);
          const pieces = [0, ...borders].map((from, index) =>
            chars.slice(from, borders[index] ?? chars.length).join(''),
          );
          for (const reading of [ASKED, NATIVE]) {
            expect(read(pieces, { reading, isCut })).toEqual(read([text], { reading, isCut }));
          }
        },
      ),
      { numRuns: 1500 },
    );
  });

  it('without a trace of a call loses nothing', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.string({ unit: 'grapheme' }),
            fc.constantFrom('{', '[', '```json\n', '\n', '"', '<', '{"a": '),
          ),
          { maxLength: 20 },
        ),
        (pieces) => {
          const text = pieces.join('');
          const { problem, ...rest } = read([text]);
          const told = problem === undefined ? rest.text : rest.text + rest.instead;
          expect(told).toBe(text);
          expect(rest.calls).toEqual([]);
        },
      ),
      { numRuns: 1500 },
    );
  });

  it('that is cut off inside a call is asked for in smaller steps, inside the answer it stands', () => {
    const cut = (text: string) => read([text], { isCut: true });
    expect(cut('{"tool": "read_file", "args": {"path": "a').problem).toContain('smaller steps');
    expect(cut('<tool_call>{"name": "read_file", "arguments": {"a": 1').problem).toContain(
      'smaller',
    );
    expect(cut('<tool_call> is a tag and').text).toBe('<tool_call> is a tag and');
    expect(cut('{"done": true, "response": "One two')).toMatchObject({
      ...{ text: 'One two', problem: undefined },
    });
  });

  it.each([
    ...['{', '[', '`', '```json\n', '<tool_call>', '{"tool":', '{ ', '{"name": "x"}\n', '"', ','],
    ...['<tool_call>read_file<arg_key>', '<function=read_file><parameter=a>', '[read_file(a=1,'],
    ...[
      '{"done": true, "response": "a" b',
      '<｜tool▁calls▁begin｜>a ',
      '[TOOL_CALLS]read_file{"a":1}',
    ],
  ])('of thousands of %j is read in a moment', (piece) => {
    const begun = cpuMs();
    read(Array.from({ length: 40_000 / piece.length }, () => piece));
    expect(cpuMs() - begun).toBeLessThan(1000);
  });

  it('tells the answer while it is written, and holds back what may be a call', () => {
    const reader = new AnswerReader(ASKED, PLAIN_MODEL);
    const told = ['{"done": true, "resp', 'onse": "One', ' two\\', 'n', 'three"', '}'].map(
      (delta) => reader.push(delta).text,
    );
    expect(told).toEqual(['', 'One', ' two', '\n', 'three', '']);
    const prose = new AnswerReader(ASKED, PLAIN_MODEL);
    expect(['I see', ' {', '"tool', 'box": 1}', ' there'].map((d) => prose.push(d).text)).toEqual([
      'I see',
      ' ',
      '',
      '{"toolbox": 1}',
      ' there',
    ]);
  });
});

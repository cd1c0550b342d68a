// The files of workflows: what they may say, what is told where they are wrong, and how their templates and
// inputs are filled in.

import { describe, expect, it } from 'vitest';
import { isOwnFile, writeAccessOf } from '../../../src/agent/rules/taint.ts';
import { readInputs, typedInputs } from '../../../src/features/workflows/rules/definition.ts';
import {
  definitionProblem,
  readCapability,
  readWorkflow,
} from '../../../src/features/workflows/rules/file.ts';
import {
  fillPrompt,
  fillValue,
  templateFault,
} from '../../../src/features/workflows/rules/template.ts';

const STEP = { id: 'a', kind: 'tool', tool: 'time', arguments: {} };
const SKILL = { id: 'b', kind: 'llm_skill', capability: 'c', with: { topic: '{{ a.text }}' } };
const WORKFLOW = { description: 'x', steps: [STEP, SKILL] };
const CAPABILITY = { description: 'x', prompt: 'Do {{ topic }}', output: { type: 'object' } };

const problemOf = (values: unknown, name = 'w') => {
  const read = readWorkflow(values, name);
  return read.kind === 'broken' ? read.problem : 'none';
};

describe('a file that is wrong names field, value and remedy', () => {
  it.each<readonly [string, unknown, RegExp]>([
    ['no steps', { description: 'x' }, /^steps: it is missing; write 1 to 50 steps$/],
    ['nothing at all', undefined, /^the file: it is missing; it may hold description, inputs/],
    [
      'a kind there is not',
      { ...WORKFLOW, steps: [{ ...STEP, kind: 'code' }] },
      /^steps\.1\.kind: "code" does not fit; write llm_skill or tool$/,
    ],
    [
      'a number out of range',
      { ...WORKFLOW, steps: [{ ...STEP, retries: 9 }] },
      /^steps\.1\.retries: 9 does not fit; write a whole number from 0 to 5$/,
    ],
    [
      'a field there is not',
      { ...WORKFLOW, steps: [{ ...STEP, code: 'x' }] },
      /^steps\.1\.code: unknown field/,
    ],
    [
      'a field of the file there is not',
      { ...WORKFLOW, loops: 3 },
      /^loops: 3 does not fit; it may hold/,
    ],
    [
      'the same step twice',
      { ...WORKFLOW, steps: [STEP, STEP] },
      /^steps\.2\.id: "a" is used twice/,
    ],
    [
      'a condition that is none',
      { ...WORKFLOW, steps: [{ ...STEP, when: { if: 'x' } }] },
      /^steps\.1\.when: \{"if":"x"\} does not fit; write one of present, equals/,
    ],
    [
      'a step there is not',
      { ...WORKFLOW, complete: { not: { done: 'z' } } },
      /^complete: there is no step "z"; there is a, b$/,
    ],
    [
      'steps that wait for each other',
      {
        ...WORKFLOW,
        steps: [
          { ...STEP, when: { or: [{ done: 'b' }, { and: [{ failed: 'c' }, { done: 'a' }] }] } },
          { ...STEP, id: 'b', when: { present: 'a.text' } },
          {
            ...STEP,
            id: 'c',
            when: { or: [{ done: 'b' }, { equals: { path: 'input.x', value: 1 } }] },
          },
        ],
      },
      /^steps\.1\.when: "a" can never begin, as what it waits for only comes behind it/,
    ],
    [
      'a value that nothing sets',
      { ...WORKFLOW, result: '{{ z.text }}' },
      /^result: \{\{ z\.text \}\} is set by nothing; there is input, a, b$/,
    ],
    [
      'a placeholder that is code',
      { ...WORKFLOW, result: '{{ 1 + 1 }}' },
      /^result: \{\{ 1 \+ 1 \}\} is not a path/,
    ],
    [
      'a tool that begins conversations',
      { ...WORKFLOW, steps: [{ ...STEP, tool: 'spawn' }] },
      /^steps\.1\.tool: "spawn" cannot be a step/,
    ],
    [
      'a tool there is not',
      { ...WORKFLOW, steps: [{ ...STEP, tool: 'read_flie' }] },
      /^steps\.1\.tool: there is no tool "read_flie"; write one that is built in/,
    ],
    [
      'an input that is no schema',
      { ...WORKFLOW, inputs: { x: { type: 'text' } } },
      /^inputs\.x: .*; write a JSON Schema/,
    ],
    ['too deep', { ...WORKFLOW, when: deep(40) }, /^the file: nested deeper than 24/],
  ])('%s', (_name, values, problem) => {
    expect(problemOf(values)).toMatch(problem);
  });

  it('its name, its capabilities and what their prompts ask for', () => {
    expect(problemOf(WORKFLOW, 'My Flow')).toMatch(/^the name of the file: use small letters/);
    const read = readWorkflow(WORKFLOW, 'w');
    const capability = readCapability(CAPABILITY, 'c');
    if (read.kind === 'broken' || capability.kind === 'broken') throw new Error('it is right');
    const problem = (capabilities: Parameters<typeof definitionProblem>[0]['capabilities']) =>
      definitionProblem({ workflow: read.value, capabilities });
    expect(problem({ c: capability.value })).toBeUndefined();
    expect(problem({})).toMatch(/^steps\.2\.capability: there is no capability "c"/);
    expect(problem({ c: { ...capability.value, prompt: '{{ other }}' } })).toMatch(
      /\{\{ other \}\}, which nothing sets/,
    );
    const wrong = readCapability({ ...CAPABILITY, output: { type: 'thing' } }, 'c');
    expect(wrong).toMatchObject({ kind: 'broken', problem: expect.stringMatching(/^output: /) });
  });
});

function deep(levels: number): object {
  return levels === 0 ? {} : { not: deep(levels - 1) };
}

it('is a rule: writing it needs an owner’s yes, and what it says is the owner’s', () => {
  for (const path of ['workflows/new.yaml', 'capabilities/x.yaml', './Workflows/x.yaml']) {
    expect(writeAccessOf(path, false)).toBe('rules');
  }
  expect(isOwnFile('workflows/research.yaml')).toBe(true);
});

describe('a template', () => {
  const scope = {
    values: { input: { name: 'Ann', list: ['x', 'y'] }, mail: { text: 'ignore all' }, n: 3 },
    foreign: ['mail'],
  };
  const wrap = (path: string, text: string) => `<${path}|${text}>`;

  it('is filled in, untrusted content wrapped, and names what is missing', () => {
    expect(fillPrompt('Hi {{ input.name }}: {{input.list.1}}', scope, wrap)).toEqual({
      ...{ kind: 'filled', value: 'Hi Ann: y', isForeign: false },
    });
    expect(fillPrompt('{{ mail.text }}', scope, wrap)).toEqual({
      ...{ kind: 'filled', value: '<mail.text|ignore all>', isForeign: true },
    });
    expect(fillPrompt('{{ a.b }} {{ input.none }} {{ a.b }}', scope, wrap)).toEqual({
      ...{ kind: 'failed', problem: 'there is no value at a.b, input.none' },
    });
    expect(fillPrompt('{{ input.constructor }}', scope, wrap)).toMatchObject({ kind: 'failed' });
  });

  it.each([
    ['{% for each in input.list %}{{ forloop.index }}{{ each | upcase }} {% endfor %}', '1X 2Y '],
    ['{% if input.name == "Ann" and n > 2 %}yes{% else %}no{% endif %}', 'yes'],
    ['{% unless input.none %}none{% endunless %} {{ input.list | size }}', 'none 2'],
    ['{% case n %}{% when 3 %}three{% endcase %}: {{ input.list | reverse }}', 'three: - y\n- x'],
    ['a{% comment %}b{% endcomment %}{% raw %}{{ n }}{% endraw %}', 'a{{ n }}'],
  ])('loops, decides and filters: %s', (template, value) => {
    expect(fillPrompt(template, scope, wrap)).toEqual({ kind: 'filled', value, isForeign: false });
    expect(fillValue({ a: [template] }, scope)).toMatchObject({ value: { a: [value] } });
  });

  it('wraps a loop or condition that reads untrusted content as a whole, and nothing else', () => {
    const template =
      'Do it. {% if mail.text contains "ignore" %}{% for each in input.list %}{{ each }}{% endfor %}{% endif %}{{ n | plus: 1 }}{{ mail.text | upcase }}';
    expect(fillPrompt(template, scope, wrap)).toEqual({
      ...{ kind: 'filled', value: 'Do it. <mail|xy>4<mail|IGNORE ALL>', isForeign: true },
    });
  });

  it.each([
    ['{{ input.none | upcase }}', /^there is no value at input\.none$/],
    ['{% for a in (1..9999999) %}{% for b in (1..9999999) %}x{% endfor %}{% endfor %}', /limit/],
    ['{{ n | append: input.constructor }}', /there is no value at input\.constructor/],
  ])('ends with a reason: %s', (template, problem) => {
    const filled = fillPrompt(template, scope, wrap);
    expect(filled).toMatchObject({ kind: 'failed', problem: expect.stringMatching(problem) });
  });

  it.each([
    '{% include "/etc/passwd" %}',
    '{% render "x" %}',
    '{% layout "x" %}',
    '{% assign a = 1 %}',
    '{% for a in b %}',
    '{{ n | nofilter }}',
    '{{ a b }}',
  ])('is refused with a remedy when the file is read: %s', (template) => {
    expect(templateFault({ result: [template] })).toMatch(/; write /);
  });

  it('fills in a value only once, and keeps what it is where it stands alone', () => {
    const tricky = { values: { a: '{{ b }}', b: 'secret' }, foreign: [] };
    expect(fillPrompt('{{ a }}', tricky, wrap)).toMatchObject({ value: '{{ b }}' });
    const filled = fillValue(
      { n: '{{ n }}', all: ['{{ input.list }}'], s: 'n={{ n }}\n{{ input.list }}' },
      scope,
    );
    expect(filled).toMatchObject({ value: { n: 3, all: [['x', 'y']], s: 'n=3\n- x\n- y' } });
  });
});

describe('inputs', () => {
  const inputs = {
    topic: { type: 'string', minLength: 2 },
    count: { type: 'integer', default: 3 },
    deep: { type: 'boolean', default: false },
  };
  const read = readWorkflow({ ...WORKFLOW, inputs }, 'w');
  if (read.kind === 'broken') throw new Error(read.problem);
  const workflow = read.value;

  it.each<readonly [string, object | undefined]>([
    ['topic=tea', { kind: 'valid', input: { topic: 'tea', count: 3, deep: false } }],
    [
      'topic="green \\"tea\\"" count=5 deep=true',
      { input: { topic: 'green "tea"', count: 5, deep: true } },
    ],
    ['topic=12', { input: { topic: '12', count: 3, deep: false } }],
    ['', { problem: 'The input "topic" is missing.' }],
    [
      'topic=tea count=many',
      { problem: expect.stringMatching(/^The input "count" does not fit: /) },
    ],
    ['topic=tea more=1', { problem: 'There is no input "more"; it takes topic, count, deep.' }],
    ['about tea', undefined],
  ])('typed as %s', (typed, expected) => {
    const given = typedInputs(workflow, typed);
    if (expected === undefined) expect(given).toBeUndefined();
    else expect(given && readInputs(workflow, given)).toMatchObject(expected);
  });
});

it('names everything that is wrong with a file', () => {
  const steps = [
    { ...STEP, kind: 'code' },
    { ...STEP, id: 'b', retries: 9 },
  ];
  expect(readWorkflow({ description: '', steps }, 'w')).toMatchObject({
    problem: expect.stringMatching(/^description: /),
    more: [
      expect.stringMatching(/^steps\.1\.kind: "code"/),
      expect.stringMatching(/^steps\.2\.retries: 9/),
    ],
  });
  const unknown = [
    { ...STEP, arguments: { path: '{{ no }}' } },
    { ...STEP, id: 'b', tool: 'nothing' },
  ];
  const inputs = { thing: { type: 'thing' } };
  expect(
    readWorkflow({ ...WORKFLOW, inputs, steps: unknown, result: '{{ nor }}' }, 'w'),
  ).toMatchObject({
    problem: expect.stringMatching(/^steps\.1\.arguments: \{\{ no \}\}/),
    more: [/^steps\.2\.tool/, /^result: /, /^inputs\.thing/].map((words) =>
      expect.stringMatching(words),
    ),
  });
});

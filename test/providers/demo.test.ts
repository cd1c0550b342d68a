import { expect, test } from 'vitest';
import { callId } from '../../src/kernel/message/ids.ts';
import { demoReply } from '../../src/providers/demo.ts';

const tool = (name: string, ...properties: readonly string[]) => ({
  name,
  description: name,
  schema: {
    type: 'object',
    properties: Object.fromEntries(properties.map((key) => [key, { type: 'string' }])),
  },
});

const TOOLS = [
  tool('time'),
  tool('list_dir', 'path'),
  tool('read_file', 'path', 'offset'),
  tool('remember', 'text'),
  tool('recall', 'query'),
];

const reply = (text: string, tools = TOOLS) =>
  demoReply({ messages: [{ role: 'user', text }], tools });

test.each(['hello', 'help', 'markdown', 'long', 'connect', 'tell me a joke'])(
  'the answer to "%s" begins by saying that this is no model',
  (text) => {
    const answer = reply(text);
    expect(answer.kind).toBe('text');
    if (answer.kind === 'text')
      expect(answer.text).toMatch(/^I am the built-in demo.*not an AI model/);
  },
);

test.each([
  ['what time is it?', 'time', {}],
  ['list files', 'list_dir', { path: '.' }],
  ['please read memory/MEMORY.md', 'read_file', { path: 'memory/MEMORY.md' }],
  ['remember that I like tea', 'remember', { text: 'I like tea' }],
  ['recall tea', 'recall', { query: 'tea' }],
])('"%s" calls the tool %s', (text, name, values) => {
  expect(reply(text)).toEqual({ kind: 'tool', tool: name, arguments: JSON.stringify(values) });
});

test('a tool that is switched off is said to be so', () => {
  expect(reply('what time is it?', [])).toMatchObject({
    text: expect.stringContaining('switched off'),
  });
});

test('the result of a tool is shown, whatever it holds', () => {
  const answer = demoReply({
    tools: TOOLS,
    messages: [
      { role: 'user', text: 'read x' },
      {
        role: 'tool',
        callId: callId('c'),
        name: 'read_file',
        text: '```js\n1\n```',
        failed: false,
      },
    ],
  });
  expect(answer).toMatchObject({ text: expect.stringContaining('````\n```js\n1\n```\n````') });
});

test('a stranger learns how to connect a real model', () => {
  const answer = reply('hello');
  expect(answer).toMatchObject({ text: expect.stringContaining('npm run nanobot -- onboard') });
  expect(answer).toMatchObject({ text: expect.stringContaining('ANTHROPIC_API_KEY') });
});

// What is typed while the agent answers.

import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { listenForStopKeys, readQuestion } from '../../../src/channels/terminal/screen.ts';

const terminal = () =>
  Object.assign(new PassThrough(), {
    ...{ isTTY: true, columns: 80 },
    setRawMode: () => undefined,
  }) as unknown as NodeJS.ReadStream & NodeJS.WriteStream;

function typing(...chunks: (string | Buffer)[]) {
  const input = terminal();
  const stops: string[] = [];
  const keys = listenForStopKeys(input, (key) => stops.push(key));
  for (const chunk of chunks) input.emit('data', Buffer.from(chunk));
  return { stops, typedAhead: keys.typedAhead };
}

test('words wait for the next question, arrows do not, and an Enter parts two lines', () => {
  const { typedAhead, stops } = typing('hel', '\x1b[D\x1bOA\x1b[1;5C', 'lo\rthere', '\t');
  expect(typedAhead).toBe('hello there');
  expect(stops).toEqual([]);
});

test('Esc alone and Ctrl+C stop', () => {
  expect(typing('\x1b').stops).toEqual(['escape']);
  expect(typing('x\x03').stops).toEqual(['interrupt']);
});

test('the next question starts with what was typed, without what was deleted again', async () => {
  const { typedAhead } = typing(
    'wrong words',
    '\x15',
    'ca',
    Buffer.of(0xc3),
    Buffer.of(0xa9),
    'x\x7f',
  );
  const input = terminal();
  const plain = { output: terminal(), prompt: '> ', history: [], commands: [] };
  const asked = readQuestion({ ...plain, input, typedAhead });
  input.write('\r');
  expect(await asked).toEqual({ kind: 'text', text: 'caé' });
});

// What is typed while the agent answers.

import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { listenForStopKeys } from '../../../src/channels/terminal/screen.ts';

function typing(...chunks: string[]) {
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => input });
  const stops: string[] = [];
  const keys = listenForStopKeys(input as unknown as NodeJS.ReadStream, (key) => stops.push(key));
  for (const chunk of chunks) input.emit('data', Buffer.from(chunk));
  return { stops, typedAhead: keys.typedAhead };
}

test('words wait for the next question, arrows do not, and an Enter parts two lines', () => {
  const { typedAhead, stops } = typing('hel', '\x1b[D\x1bOA\x1b[1;5C', 'lo\rthere', '\x7f');
  expect(typedAhead).toBe('hello there');
  expect(stops).toEqual([]);
});

test('Esc alone and Ctrl+C stop', () => {
  expect(typing('\x1b').stops).toEqual(['escape']);
  expect(typing('x\x03').stops).toEqual(['interrupt']);
});

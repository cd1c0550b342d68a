// Reads a stream of server-sent events (HTML Living Standard, 9.2.6) whose data is JSON.

import { parseJson } from '../../lib/json/json.ts';

/** Yields the data of each event; what is no JSON is passed over. */
export async function* readServerEvents(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<unknown, void, void> {
  let data: string[] = [];
  for await (const line of readLines(body)) {
    if (line === '' && data.length > 0) {
      const value = parseJson(data.join('\n'));
      data = [];
      if (value !== undefined) yield value;
    } else if (line.startsWith('data:')) {
      data.push(line.slice('data:'.length).replace(/^ /, ''));
    }
  }
}

async function* readLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const piece of body) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

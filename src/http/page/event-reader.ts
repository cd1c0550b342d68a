// Reads server-sent events from a response's body: yields the JSON data of each, and undefined for
// a heartbeat. Between events that came at once the page has time to draw.

/** So long it goes on without a break. */
const TURN_MS = 5;

export async function* readEvents(body: ReadableStream<BufferSource>): AsyncGenerator<unknown> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let begun = performance.now();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        yield dataOf(block);
        if (performance.now() - begun < TURN_MS) continue;
        await new Promise((resolve) => setTimeout(resolve));
        begun = performance.now();
      }
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

function dataOf(block: string): unknown {
  const lines = block.split('\n').filter((line) => line.startsWith('data: '));
  if (lines.length === 0) return undefined;
  return JSON.parse(lines.map((line) => line.slice('data: '.length)).join('\n'));
}

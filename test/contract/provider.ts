// The suite every model provider passes. An implementation supplies models that behave as described;
// how it makes them do so is its own business.

import { expect, test } from 'vitest';
import { ProviderError } from '../../src/kernel/message/errors.ts';
import type { ModelEvent, ModelHandle, ModelRequest } from '../../src/providers/provider.ts';

type Request = Omit<ModelRequest, 'model'>;

export type ProviderUnderTest = AsyncDisposable & {
  /** A model that answers `text` in several pieces. */
  answers(): Promise<{ readonly handle: ModelHandle; readonly request: Request }>;
  /** A model that asks for the tool `time` once, and answers after its result. */
  callsTool(): Promise<{ readonly handle: ModelHandle; readonly request: Request }>;
  /** A model whose answer takes until the caller stops it. */
  neverEnds(): Promise<{ readonly handle: ModelHandle; readonly request: Request }>;
};

const idle = () => new AbortController().signal;

async function drain(events: AsyncIterable<ModelEvent>): Promise<readonly ModelEvent[]> {
  const all: ModelEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

function finishedOf(events: readonly ModelEvent[]) {
  const last = events.at(-1);
  if (last?.type !== 'finished') throw new Error('the stream did not end with finished');
  return last;
}

export function providerContract(name: string, start: () => Promise<ProviderUnderTest>): void {
  test(`${name}: the pieces streamed are the text of the one finished event`, async () => {
    await using subject = await start();
    const { handle, request } = await subject.answers();
    const events = await drain(handle.stream(request, idle()));
    const deltas = events.filter((event) => event.type === 'text').map((event) => event.delta);
    expect(deltas.length).toBeGreaterThan(0);
    expect(events.filter((event) => event.type === 'finished')).toHaveLength(1);
    const finished = finishedOf(events);
    expect(finished.text).toBe(deltas.join(''));
    expect(finished.stop).toBe('end');
    expect(finished.model).toBe(handle.name);
    expect(finished.usage?.outputTokens).toBeGreaterThan(0);
  });

  test(`${name}: a tool call is announced, complete at the end, and its result is understood`, async () => {
    await using subject = await start();
    const { handle, request } = await subject.callsTool();
    const events = await drain(handle.stream(request, idle()));
    const asked = finishedOf(events);
    const [call] = asked.toolCalls;
    if (call === undefined) throw new Error('no tool call');
    expect(asked.stop).toBe('tool_calls');
    expect(events).toContainEqual({ type: 'tool_call', id: call.id, name: 'time' });
    expect(JSON.parse(call.arguments)).toBeTypeOf('object');
    const { text, toolCalls, thinking } = asked;
    const result = { callId: call.id, name: 'time', text: 'It is noon.', failed: false };
    const messages = [
      ...request.messages,
      { role: 'assistant', text, toolCalls, thinking } as const,
      { role: 'tool', ...result } as const,
    ];
    const answer = finishedOf(await drain(handle.stream({ ...request, messages }, idle())));
    expect(answer.stop).toBe('end');
    expect(answer.text).not.toBe('');
  });

  test(`${name}: a call that is aborted ends at once as cancelled`, async () => {
    await using subject = await start();
    const { handle, request } = await subject.neverEnds();
    const stop = new AbortController();
    const reading = (async () => {
      for await (const event of handle.stream(request, stop.signal)) {
        if (event.type === 'text') stop.abort();
      }
    })();
    const error = await reading.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(ProviderError);
    expect(error).toMatchObject({ failure: { kind: 'cancelled' } });
  });

  test(`${name}: a call that was aborted before it began asks nobody`, async () => {
    await using subject = await start();
    const { handle, request } = await subject.neverEnds();
    const events = drain(handle.stream(request, AbortSignal.abort()));
    await expect(events).rejects.toMatchObject({ failure: { kind: 'cancelled' } });
  });
}

// Puts one scripted reply on the wire: gates, faults, cuts inside characters.

import type { ServerResponse } from 'node:http';
import type { Chunk, Dialect, LlmReply, LlmRequest } from './llm-server-reply.ts';

export type Delivery = {
  readonly dialect: Dialect;
  readonly reply: LlmReply;
  readonly request: LlmRequest;
  readonly callIds: () => string;
  readonly outgoing: ServerResponse;
  /** Aborts when the server closes, so that no gate or hang outlives it. */
  readonly closing: AbortSignal;
};

const EVENT_STREAM = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' };

export async function writeReply(delivery: Delivery): Promise<void> {
  const { dialect, reply, request, outgoing } = delivery;
  if (reply.gate !== undefined) await untilGone(reply.gate, delivery);
  if (outgoing.destroyed || delivery.closing.aborted) return;
  const fault = reply.fault;
  if (fault?.kind === 'hang') return;
  if (fault?.kind === 'refuse') return void outgoing.destroy();
  if (fault?.kind === 'status') {
    const message = `simulated ${fault.status}`;
    const body = fault.body ?? dialect.errorBody(fault.status, 'simulated', message);
    outgoing.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
    outgoing.end(typeof body === 'string' ? body : JSON.stringify(body));
    return;
  }
  const wire = dialect.frames(reply, request, delivery.callIds);
  if (!request.stream) {
    outgoing.writeHead(200, { 'content-type': 'application/json' });
    outgoing.end(JSON.stringify(wire.whole()));
    return;
  }
  outgoing.writeHead(200, EVENT_STREAM);
  if (reply.cutAt !== undefined) {
    const frames = [...wire.head, ...wire.content, ...wire.end].filter(
      (f) => typeof f === 'string',
    );
    return writeCut(Buffer.from(frames.join('')), reply.cutAt, outgoing);
  }
  outgoing.write(wire.head.join(''));
  await writeChunks(wire.content, delivery);
  if (fault === undefined) return void outgoing.end(wire.end.join(''));
  await misbehave(fault, wire.content, delivery);
}

async function misbehave(
  fault: NonNullable<LlmReply['fault']>,
  content: readonly Chunk[],
  delivery: Delivery,
): Promise<void> {
  const { outgoing } = delivery;
  if (fault.kind === 'drop') {
    await flushed(outgoing);
    outgoing.destroy();
  }
  if (fault.kind === 'no_end') outgoing.end();
  if (fault.kind === 'malformed') outgoing.end('event: message_delta\ndata: {"type": \n\n');
  if (fault.kind === 'error_event') {
    outgoing.end(delivery.dialect.errorFrame(fault.type, fault.message));
  }
  while (fault.kind === 'endless' && !gone(delivery)) {
    await writeChunks(content, delivery);
    await flushed(outgoing);
  }
}

const gone = ({ outgoing, closing }: Delivery) => outgoing.destroyed || closing.aborted;

async function writeChunks(chunks: readonly Chunk[], delivery: Delivery): Promise<void> {
  for (const chunk of chunks) {
    if (gone(delivery)) return;
    if (typeof chunk === 'string') delivery.outgoing.write(chunk);
    else await untilGone(chunk, delivery);
  }
}

/** Waits for a gate, but no longer than the client and the server live. */
function untilGone(gate: Promise<unknown>, { outgoing, closing }: Delivery): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      outgoing.off('close', done);
      closing.removeEventListener('abort', done);
      resolve();
    };
    outgoing.once('close', done);
    closing.addEventListener('abort', done, { once: true });
    gate.then(done, done);
  });
}

async function writeCut(body: Buffer, cutAt: number | 'every', outgoing: ServerResponse) {
  const cuts = cutAt === 'every' ? body.keys() : [cutAt];
  let from = 0;
  for (const cut of cuts) {
    if (cut <= from) continue;
    outgoing.write(body.subarray(from, cut));
    await flushed(outgoing);
    from = cut;
  }
  outgoing.end(body.subarray(from));
}

/** The bytes have left this process as a piece of their own. */
async function flushed(outgoing: ServerResponse): Promise<void> {
  await new Promise<void>((resolve) => outgoing.write('', () => resolve()));
  await new Promise<void>((resolve) => setImmediate(resolve));
}

// A conversation with the running gateway over its HTTP server on this machine. Events are read
// from a stream (HTML Living Standard, 9.2.6).

import { z } from 'zod';
import { authorization } from '../../kernel/home-state.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { parseJson } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import type { LocalEvent } from '../local-channel.ts';
import type { Conversation } from './conversation.ts';

const REQUEST_TIMEOUT_MS = 10_000;
const RECONNECT_MS = 500;
const MAX_FAILURES = 20;

type AttachOptions = {
  /** Base URL of the gateway. */
  readonly address: string;
  /** Read for each connection: it may have changed. */
  readonly token: () => Promise<string>;
  readonly chat: string;
  /** Waits between two tries to connect. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
};

class GatewayGoneError extends NanobotError {
  override readonly name = 'GatewayGoneError';
  constructor(address: string, cause: unknown) {
    const kept = t`a question that it received is answered later`;
    super('gateway_gone', t`no answer from the gateway at ${address}; ${kept}`, { cause });
  }
}

const localEvent = z.custom<LocalEvent>(
  (value) => z.object({ type: z.enum(['said', 'live']) }).safeParse(value).success,
);

export function attach(options: AttachOptions): Conversation {
  const base = `${options.address}/api/terminal/chats/${encodeURIComponent(options.chat)}`;
  const headers = async () => authorization(await options.token());

  async function post(path: string, body: object) {
    const response = await fetch(`${base}/${path}`, {
      method: 'POST',
      headers: { ...(await headers()), 'content-type': 'application/json' },
      body: JSON.stringify(body),
      redirect: 'error',
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    }).catch((error: unknown) => {
      throw new GatewayGoneError(options.address, error);
    });
    if (response.ok) return;
    const message = t`the gateway refused the request (${response.status}): ${await response.text()}`;
    throw new NanobotError('gateway_refused', message);
  }

  /** One connection; ends when it is lost. */
  async function* connection(afterSeq: number, signal: AbortSignal): AsyncGenerator<LocalEvent> {
    const response = await fetch(`${base}/events?after=${afterSeq}`, {
      headers: await headers(),
      redirect: 'error',
      signal,
    });
    if (!response.ok || response.body === null) {
      throw new NanobotError(
        'gateway_refused',
        t`the gateway refused the request (${response.status})`,
      );
    }
    for await (const data of readServerEvents(response.body)) {
      const event = localEvent.safeParse(data);
      if (event.success) yield event.data;
    }
  }

  return {
    submit: (clientId, text) => post('messages', { clientId, text }),
    stop: () => post('stop', {}),
    async *events(afterSeq, signal) {
      let seen = afterSeq;
      let failures = 0;
      while (!signal.aborted) {
        try {
          for await (const event of connection(seen, signal)) {
            failures = 0;
            if (event.type === 'said') seen = event.seq;
            yield event;
          }
        } catch (error) {
          if (signal.aborted) return;
          failures += 1;
          if (failures > MAX_FAILURES) throw new GatewayGoneError(options.address, error);
        }
        await options.sleep(RECONNECT_MS, signal).catch(() => undefined);
      }
    },
  };
}

/** Yields the JSON data of each server-sent event; skips what is no JSON. */
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

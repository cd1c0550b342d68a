// One long connection: the SDK's WSClient without its own way of connecting again, which would try a wrong
// secret for ever and wait by no clock of ours. Its end is told by its socket, seen through the agent.

import type { Duplex } from 'node:stream';
import { type EventDispatcher, LoggerLevel, WSClient } from '@larksuiteoapi/node-sdk';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { agentFor, createHttp, type LarkApp } from './api.ts';
import { LarkCallError, refusalOf } from './failures.ts';

export type LongConnection = {
  /** Resolves when the connection is gone. */
  readonly closed: Promise<void>;
  /** Grows with everything Lark sends, answers to our pings among it. */
  bytesRead(): number;
  /** Grows with our pings and receipts. */
  bytesWritten(): number;
  close(): void;
};

export type ConnectionDeps = {
  readonly app: LarkApp;
  readonly dispatcher: EventDispatcher;
  readonly clock: Clock;
  readonly log: Logger;
};

const HANDSHAKE_MS = 15_000;
/** Address and handshake together. */
const OPEN_DEADLINE_MS = 40_000;
/**
 * Lark answers a ping at once; one that stays away this long means a dead line. The SDK counts from its
 * last ping, so this sees nothing where Lark wants pings more often: there `watch` in run.ts does.
 */
const PONG_TIMEOUT_SECS = 30;

/** @throws LarkCallError */
export async function openConnection(
  { app, dispatcher, clock, log }: ConnectionDeps,
  signal: AbortSignal,
): Promise<LongConnection> {
  const opening = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  let socket:
    | (Duplex & { readonly bytesRead?: number; readonly bytesWritten?: number })
    | undefined;
  const agent = agentFor(app.root, false);
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    const made = connect(options, callback);
    socket = made ?? undefined;
    made?.once('close', () => closed.resolve());
    return made;
  };
  const client = new WSClient({
    appId: app.appId,
    appSecret: app.appSecret,
    domain: app.root,
    httpInstance: createHttp(agentFor(app.root, false), (_url, body) => {
      const refusal = refusalOf(body, 200);
      if (refusal === undefined) return;
      opening.reject(refusal);
      throw refusal;
    }),
    agent,
    autoReconnect: false,
    handshakeTimeoutMs: HANDSHAKE_MS,
    wsConfig: { pingTimeout: PONG_TIMEOUT_SECS },
    logger: toOurs(log),
    loggerLevel: LoggerLevel.warn,
    onReady: opening.resolve,
    onError: () => opening.reject(failed('the long connection could not be opened')),
  });
  const close = () => {
    client.close({ force: true });
    socket?.destroy();
    agent.destroy();
  };
  const onAbort = () => opening.reject(failed('given up'));
  signal.addEventListener('abort', onAbort, { once: true });
  const deadline = clock.timer(OPEN_DEADLINE_MS, () => opening.reject(failed('no answer in time')));
  try {
    if (signal.aborted) onAbort();
    else await client.start({ eventDispatcher: dispatcher });
    await opening.promise;
  } catch (error) {
    close();
    throw error;
  } finally {
    deadline[Symbol.dispose]();
    signal.removeEventListener('abort', onAbort);
  }
  const bytesRead = () => socket?.bytesRead ?? 0;
  const bytesWritten = () => socket?.bytesWritten ?? 0;
  return { closed: closed.promise, bytesRead, bytesWritten, close };
}

const failed = (reason: string) => new LarkCallError({ kind: 'unanswered', reason });

/**
 * The SDK's words up to the first sign behind which it quotes: addresses with tickets, frames, and what
 * people wrote would follow.
 */
function toOurs(log: Logger) {
  const note = (args: unknown) => {
    const words = (Array.isArray(args) ? args.flat() : [args]).filter(
      (part) => typeof part === 'string' && part !== '[ws]',
    );
    log.info('lark sdk', {
      note: String(words[0] ?? '')
        .split(/[:;,"{]/)[0]
        ?.slice(0, 80),
    });
  };
  return { error: note, warn: note, info: note, debug: note, trace: note };
}

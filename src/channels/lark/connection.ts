// Keeps a long connection open: proves id and secret, connects, watches, and connects again with growing
// waits. A refused secret ends it. One connection is the SDK's WSClient without its own reconnects, which
// would try a wrong secret for ever.

import type { Duplex } from 'node:stream';
import { type EventDispatcher, LoggerLevel, WSClient } from '@larksuiteoapi/node-sdk';
import { ChannelError, NEVER } from '../../kernel/message/errors.ts';
import type { Logger } from '../../lib/logger.ts';
import { backoffMs } from '../../lib/time/clock.ts';
import type { ChannelHost } from '../channel.ts';
import {
  agentFor,
  type BotInfo,
  botInfo,
  createHttp,
  type LarkApi,
  type LarkApp,
  lastingTrouble,
} from './api.ts';
import type { Events } from './events.ts';
import { describeFailure, LarkCallError, refusalOf } from './failures.ts';

export type RunDeps = {
  readonly api: LarkApi;
  readonly app: LarkApp;
  readonly host: ChannelHost;
  readonly events: Events;
  readonly random: () => number;
  onBot(bot: BotInfo): void;
};

const MIN_WAIT_MS = 1000;
const MAX_WAIT_MS = 60_000;
/** A connection that held this long was a good one. */
const STEADY_MS = 60_000;
/** How often it is looked whether Lark still answers; it is pinged about every two minutes. */
const WATCH_MS = 30_000;
/**
 * Looks in a row that found something written and nothing read. As long as the longest usual time between
 * two pings, so that receipts, which Lark does not answer, are not taken for pings.
 */
const MAX_UNANSWERED = 4;
/** Codes of the long connection's address: forbidden, and not taken. */
const CONNECTION_REFUSED: readonly number[] = [403, 514];

export async function runConnections(deps: RunDeps, signal: AbortSignal): Promise<void> {
  const { host, random, events } = deps;
  let failures = 0;
  host.report({ kind: 'starting' });
  while (!signal.aborted) {
    const startedAt = host.clock.monotonic();
    const failure = await connectOnce(deps, signal);
    if (signal.aborted) break;
    failures = host.clock.monotonic() - startedAt > STEADY_MS ? 1 : failures + 1;
    stopWhereLasting(host, failure);
    const reason = reasonOf(failure);
    const waitMs = backoffMs(failures, { minMs: MIN_WAIT_MS, maxMs: MAX_WAIT_MS, random });
    host.log.warn('lark connection lost', { reason, waitMs, failures });
    host.report({ kind: 'degraded', reason, retryAt: host.clock.now() + waitMs });
    await host.clock.sleep(waitMs, signal).catch(() => undefined);
  }
  await events.settled();
}

/** One connection until its end; why it failed, undefined where it was only lost. */
async function connectOnce(deps: RunDeps, signal: AbortSignal): Promise<unknown> {
  const { api, app, host, events } = deps;
  try {
    const bot = await botInfo(api, signal);
    deps.onBot(bot);
    const { dispatcher } = events;
    const { clock, log } = host;
    const connection = await openConnection({ app, dispatcher, clock, log }, signal);
    try {
      await watch(connection, bot, host, signal);
    } finally {
      connection.close();
    }
    return undefined;
  } catch (error) {
    if (error instanceof LarkCallError) return error;
    throw error;
  }
}

/** Reports every sign of life; returns when the connection is gone or is to be. */
async function watch(
  connection: LongConnection,
  bot: BotInfo,
  host: ChannelHost,
  signal: AbortSignal,
): Promise<void> {
  const ended = new AbortController();
  const stop = () => ended.abort();
  signal.addEventListener('abort', stop, { once: true });
  void connection.closed.then(stop);
  if (signal.aborted) stop();
  let [read, written, unanswered] = [-1, 0, 0];
  while (!ended.signal.aborted) {
    const [nowRead, nowWritten] = [connection.bytesRead(), connection.bytesWritten()];
    if (nowRead !== read) {
      unanswered = 0;
      host.report({ kind: 'running', activeAt: host.clock.now(), account: bot.name });
    } else if (nowWritten !== written) unanswered += 1;
    if (unanswered >= MAX_UNANSWERED) break;
    [read, written] = [nowRead, nowWritten];
    await host.clock.sleep(WATCH_MS, ended.signal).catch(() => undefined);
  }
  signal.removeEventListener('abort', stop);
}

function stopWhereLasting(host: ChannelHost, failure: unknown): void {
  const trouble = lastingTrouble(failure) ?? connectionTrouble(failure);
  if (trouble === undefined) return;
  const remedy =
    trouble.code === 'lark_credentials_refused'
      ? 'Compare channels.lark.appId and appSecret with the developer console: nanobot channels login lark'
      : 'Follow docs/channels/lark.md: the bot, its permissions, events by long connection, a published version.';
  host.report({ kind: 'stopped', reason: trouble.message, remedy });
  host.alert(`${trouble.message}. ${remedy}`);
  throw trouble;
}

function connectionTrouble(failure: unknown): ChannelError | undefined {
  const code =
    failure instanceof LarkCallError && 'code' in failure.failure ? failure.failure.code : 0;
  if (!CONNECTION_REFUSED.includes(code)) return undefined;
  const reason = 'Lark gives this app no long connection';
  return new ChannelError('lark_no_connection', reason, { remedy: NEVER });
}

const TOO_MANY_CONNECTIONS = 1000040350;

function reasonOf(failure: unknown): string {
  if (!(failure instanceof LarkCallError)) return 'the connection to Lark was lost';
  const { failure: what } = failure;
  if (what.kind === 'refused' && what.code === TOO_MANY_CONNECTIONS) {
    return 'too many programs are connected as this app; each takes some of its messages';
  }
  return `Lark: ${describeFailure(what)}`;
}

// One long connection: the SDK's WSClient without its own way of connecting again, which would try a wrong
// secret for ever and wait by no clock of ours. Its end is told by its socket, seen through the agent.

type LongConnection = Awaited<ReturnType<typeof openConnection>>;

type ConnectionDeps = Pick<ChannelHost, 'clock' | 'log'> & {
  readonly app: LarkApp;
  readonly dispatcher: EventDispatcher;
};

const HANDSHAKE_MS = 15_000;
/** Address and handshake together. */
const OPEN_DEADLINE_MS = 40_000;
/**
 * Lark answers a ping at once; one that stays away this long means a dead line. The SDK counts from its
 * last ping, so this sees nothing where Lark wants pings more often: there `watch` does.
 */
const PONG_TIMEOUT_SECS = 30;

/** @throws LarkCallError */
export async function openConnection(
  { app, dispatcher, clock, log }: ConnectionDeps,
  signal: AbortSignal,
) {
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
  return {
    /** Resolves when the connection is gone. */
    closed: closed.promise,
    /** Grows with everything Lark sends, answers to our pings among it. */
    bytesRead: () => socket?.bytesRead ?? 0,
    /** Grows with our pings and receipts. */
    bytesWritten: () => socket?.bytesWritten ?? 0,
    close,
  };
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

// Keeps a long connection open: checks id and secret, connects, watches, and reconnects with
// growing waits. A refused secret ends it. One connection is the SDK's WSClient without its own
// reconnects, which would retry a wrong secret forever.

import type { Duplex } from 'node:stream';
import { EventDispatcher, LoggerLevel, WSClient } from '@larksuiteoapi/node-sdk';
import { howToList, plain } from '../../kernel/access/admission.ts';
import type { InboundEntry } from '../../kernel/bus/bus.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { BusFullError, ChannelError, NEVER } from '../../kernel/message/errors.ts';
import type { ThreadId } from '../../kernel/message/ids.ts';
import { toastOf } from '../../kernel/message/message.ts';
import { createLanes, RecentMap } from '../../lib/async.ts';
import { textOf } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import { watchConnections } from '../../lib/net/proxies.ts';
import { t } from '../../lib/texts.ts';
import { backoffMs, onAbort } from '../../lib/time/clock.ts';
import type { ChannelHost, ShowOutcome } from '../channel.ts';
import {
  agentFor,
  type BotInfo,
  botInfo,
  createHttp,
  type LarkApi,
  type LarkApp,
  lastingTrouble,
  SILENT_SDK,
} from './api.ts';
import { describeFailure, LarkCallError, refusalOf } from './failures.ts';
import {
  createRecentMessages,
  type InboundContext,
  toEntry,
  toPress,
  toReaction,
  toWithdrawal,
} from './inbound.ts';
import { at, isId, LARK, larkMessageId } from './rules/content.ts';

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
/** A connection that lasted this long counts as good. */
const STEADY_MS = 60_000;
/** Interval of the check whether Lark still answers; pings are about two minutes apart. */
const WATCH_MS = 30_000;
/**
 * Consecutive checks that found something written and nothing read. Covers the longest usual time
 * between two pings, so that receipts, which Lark does not answer, are not taken for pings.
 */
const MAX_UNANSWERED = 4;
/** Codes of the request for the connection's URL: forbidden, and not accepted. */
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

/** Runs one connection to its end; returns why it failed, undefined if it was only lost. */
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

/** Reports every sign of life; returns when the connection is lost or must be closed. */
async function watch(
  connection: LongConnection,
  bot: BotInfo,
  host: ChannelHost,
  signal: AbortSignal,
): Promise<void> {
  const ended = new AbortController();
  const stop = () => ended.abort();
  using _stopping = onAbort(signal, stop);
  void connection.closed.then(stop);
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
}

function stopWhereLasting(host: ChannelHost, failure: unknown): void {
  const trouble = lastingTrouble(failure) ?? connectionTrouble(failure);
  if (trouble === undefined) return;
  const remedy =
    trouble.code === 'lark_credentials_refused'
      ? t`Compare channels.lark.appId and appSecret with the developer console: nanobot channels login lark`
      : t`Follow docs/channels/lark.md: the bot, its permissions, events by long connection, a published version.`;
  host.report({ kind: 'stopped', reason: trouble.message, remedy });
  host.alert(`${trouble.message}. ${remedy}`);
  throw trouble;
}

function connectionTrouble(failure: unknown): ChannelError | undefined {
  const code =
    failure instanceof LarkCallError && 'code' in failure.failure ? failure.failure.code : 0;
  if (!CONNECTION_REFUSED.includes(code)) return undefined;
  const reason = t`Lark refused the long connection of this app`;
  return new ChannelError('lark_no_connection', reason, { remedy: NEVER });
}

const TOO_MANY_CONNECTIONS = 1000040350;

function reasonOf(failure: unknown): string {
  if (!(failure instanceof LarkCallError)) return t`the connection to Lark was lost`;
  const { failure: what } = failure;
  if (what.kind === 'refused' && what.code === TOO_MANY_CONNECTIONS) {
    return t`too many programs are connected as this app; each receives some of its messages`;
  }
  return `Lark: ${describeFailure(what)}`;
}

// One long connection. Its socket, observed through the agent, reports its end.

type LongConnection = Awaited<ReturnType<typeof openConnection>>;

type ConnectionDeps = Pick<ChannelHost, 'clock' | 'log'> & {
  readonly app: LarkApp;
  readonly dispatcher: EventDispatcher;
};

const HANDSHAKE_MS = 15_000;
/** URL request and handshake together. */
const OPEN_DEADLINE_MS = 40_000;
/**
 * Lark answers a ping at once; a pong that takes this long means a dead connection. The SDK counts
 * from its last ping, so this detects nothing if Lark wants more frequent pings: there `watch`
 * does.
 */
const PONG_TIMEOUT_SECS = 30;

/** @throws LarkCallError */
async function openConnection(
  { app, dispatcher, clock, log }: ConnectionDeps,
  signal: AbortSignal,
) {
  const opening = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  let socket:
    | (Duplex & { readonly bytesRead?: number; readonly bytesWritten?: number })
    | undefined;
  const agent = agentFor(app, false);
  watchConnections(agent, (made) => {
    socket = made;
    made.once('close', () => closed.resolve());
  });
  const client = new WSClient({
    appId: app.appId,
    appSecret: app.appSecret,
    domain: app.root,
    httpInstance: createHttp(agentFor(app, false), (_url, body) => {
      const refusal = refusalOf(body);
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
    onError: () => opening.reject(failed(t`cannot open the long connection`)),
  });
  const close = () => {
    client.close({ force: true });
    socket?.destroy();
    agent.destroy();
  };
  using _aborting = onAbort(signal, () => opening.reject(failed(t`given up`)));
  using _deadline = clock.timer(OPEN_DEADLINE_MS, () =>
    opening.reject(failed(t`no answer in time`)),
  );
  try {
    if (!signal.aborted) await client.start({ eventDispatcher: dispatcher });
    await opening.promise;
  } catch (error) {
    close();
    throw error;
  }
  return {
    /** Resolves when the connection is closed. */
    closed: closed.promise,
    /** Grows with everything Lark sends, including pongs. */
    bytesRead: () => socket?.bytesRead ?? 0,
    /** Grows with our pings and receipts. */
    bytesWritten: () => socket?.bytesWritten ?? 0,
    close,
  };
}

const failed = (reason: string) => new LarkCallError({ kind: 'unanswered', reason });

/**
 * The SDK's text up to the first character after which it quotes: addresses with tickets, frames
 * and message texts would follow.
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

// Receives Lark's events: each is stored before its receipt goes back, in order within a chat. Lark
// repeats a refused event after 15 s, 5 min, 1 h and 6 h. Lark accepts only answers in a thread, so
// one message of each thread is stored.
// open.feishu.cn/document/server-docs/event-subscription-guide/overview

type EventDeps = {
  readonly host: ChannelHost;
  readonly threads: Threads;
  readonly groups: readonly string[];
  context(): InboundContext;
};

export type Events = ReturnType<typeof createEvents>;

/** The toast for the person who pressed; the full text comes as a message. */
const toastWith = (content: string) => ({ toast: { type: 'info', content } });
const TAKEN = t`Taken`;
const RETRY_MS = 15_000;

export function createEvents({ host, threads, groups, context }: EventDeps) {
  const lanes = createLanes();
  const recent = createRecentMessages();
  const running = new Set<Promise<unknown>>();

  async function store(
    kind: string,
    entry: InboundEntry | undefined,
    pressed?: ShowOutcome,
  ): Promise<boolean> {
    if (entry === undefined) {
      host.log.info('lark event ignored', { kind });
      return false;
    }
    try {
      await host.receive([entry], pressed === undefined ? {} : { pressed });
      return true;
    } catch (error) {
      if (error instanceof BusFullError) {
        const reason = t`the queue is full; Lark sends these messages again later`;
        host.report({ kind: 'degraded', reason, retryAt: host.clock.now() + RETRY_MS });
      }
      throw error;
    }
  }

  /** Serialises by chat; the SDK delivers events concurrently. */
  const inLane = <T>(lane: unknown, task: () => Promise<T>): Promise<T> => {
    const done = lanes.run(textOf(lane) ?? '', task);
    running.add(done);
    const forget = () => void running.delete(done);
    done.then(forget, forget);
    return done;
  };

  const reaction = (event: unknown, isTakenBack: boolean) =>
    inLane(at(event, 'message_id'), async () => {
      await store('reaction', await toReaction(event, isTakenBack, context()));
    });

  const handlers: Readonly<Record<string, (event: unknown) => Promise<unknown>>> = {
    'im.message.receive_v1': (event) =>
      inLane(at(event, 'message', 'chat_id'), async () => {
        const entry = await toEntry(event, context());
        if (entry?.kind === 'queue') {
          recent.note(entry.message);
          await threads.note(entry.message.chat.thread, larkMessageId(entry.message.id));
        }
        await store('message', entry);
      }),
    'im.message.recalled_v1': (event) =>
      inLane(at(event, 'chat_id'), async () => {
        await store('recall', toWithdrawal(event, recent, host.clock.now()));
      }),
    'card.action.trigger': (event) =>
      inLane(at(event, 'context', 'open_chat_id'), async () => {
        let words = TAKEN;
        const show: ShowOutcome = (_press, markdown) => {
          words = toastOf(markdown) || TAKEN;
        };
        return (await store('press', await toPress(event, context()), show))
          ? toastWith(words)
          : {};
      }),
    'im.message.reaction.created_v1': (event) => reaction(event, false),
    'im.message.reaction.deleted_v1': (event) => reaction(event, true),
    'im.chat.member.bot.added_v1': async (event) => {
      const chat = textOf(at(event, 'chat_id'));
      if (!isId(chat) || groups.includes(chat)) return;
      const title = plain(textOf(at(event, 'name')) ?? 'a group');
      const where = t`the Lark group ${title} (${chat})`;
      host.tell(t`I was added to ${where}. I do not write there. ${howToList(LARK, chat)}`);
    },
    // Often subscribed along with the others; ignored.
    'im.message.message_read_v1': async () => undefined,
    'im.chat.access_event.bot_p2p_chat_entered_v1': async () => undefined,
  };

  return {
    dispatcher: new EventDispatcher({ logger: SILENT_SDK }).register({ ...handlers }),
    /** Resolves when nothing is being stored any more. */
    settled: async () => void (await Promise.allSettled(running)),
  };
}

// How to write into a thread: Lark accepts only answers to one of its messages, so one message of
// each thread is stored, once.

export type Threads = ReturnType<typeof createThreads>;

const MAX_KNOWN = 1000;
const keyOf = (thread: ThreadId) => `thread:${thread}`;

export function createThreads(state: () => KeyValueStore | undefined) {
  const known = new RecentMap<ThreadId, string>(MAX_KNOWN);
  /** A message to answer; undefined if none is known. */
  async function anchor(thread: ThreadId): Promise<string | undefined> {
    const kept = known.get(thread) ?? (await state()?.get(keyOf(thread)));
    if (!isId(kept)) return undefined;
    known.set(thread, kept);
    return kept;
  }

  return {
    anchor,
    async note(thread: ThreadId | undefined, message: string | undefined): Promise<void> {
      if (thread === undefined || message === undefined) return;
      if ((await anchor(thread)) !== undefined) return;
      await state()?.set(keyOf(thread), message);
      known.set(thread, message);
    },
  };
}

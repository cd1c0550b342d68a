// Follows a stream of events while it is shown: connects, again when the connection is lost (a chat
// resumes after the last message seen), and closes it while the page is hidden (a browser has few
// connections to share).

import { t } from '/texts.js';
import { chatPath, RefusedError, type WholeApi } from './api.ts';
import type { ChatEvent } from './chat/events.ts';
import { readEvents } from './event-reader.ts';

type Timer = ReturnType<typeof setTimeout> | undefined;
type Occasion = readonly [EventTarget, string];
type Listeners<Event> = {
  readonly signal: AbortSignal;
  onConnected(): void;
  onLost(problem: unknown): void;
  onEvent(event: Event): void;
};

const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 10_000;
/** The gateway sends a heartbeat every 15 s. */
const SILENCE_MS = 40_000;
const HIDDEN_MS = 60_000;

/** Live updates are differences to earlier ones of the same connection. */
export async function followChat(
  api: Pick<WholeApi, 'openStream'>,
  chat: string,
  afterSeq: number,
  listeners: Listeners<ChatEvent>,
): Promise<void> {
  let seen = afterSeq;
  const pathNow = () => `${chatPath(chat)}/events?live=delta&after=${seen}`;
  await followStream((signal) => api.openStream(pathNow(), signal), {
    ...listeners,
    onEvent(given) {
      const event = given as ChatEvent;
      if (event.type === 'said') seen = event.seq;
      listeners.onEvent(event);
    },
  });
}

/**
 * `onConnected` is called before the first event of each connection, `onLost` when one is lost,
 * with the problem if it is known, `onEvent` with each event.
 */
export async function followStream(
  open: (signal: AbortSignal) => Promise<ReadableStream>,
  { signal, onConnected, onLost, onEvent }: Listeners<unknown>,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    await visible(signal);
    const connection = new AbortController();
    const whole = AbortSignal.any([signal, connection.signal]);
    const watch = watchConnection(connection);
    let problem: unknown;
    try {
      const body = await open(whole);
      onConnected();
      failures = 0;
      watch.alive();
      for await (const event of readEvents(body)) {
        watch.alive();
        if (event !== undefined) onEvent(event);
      }
    } catch (error) {
      if (signal.aborted) return;
      problem = error;
    } finally {
      watch.end();
      connection.abort();
    }
    if (signal.aborted) return;
    if (document.visibilityState === 'visible') onLost(problem);
    await pause(retryMs(failures), signal);
    failures += 1;
  }
}

const retryMs = (failures: number) =>
  Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** failures) * (0.75 + Math.random() / 2);

export const lostText = (problem: unknown): string =>
  problem instanceof RefusedError ? problem.message : t`Connection lost, reconnecting…`;

/** Ends a connection that is silent, and one of a hidden page. */
function watchConnection(connection: AbortController) {
  let silence: Timer;
  let hidden: Timer;
  const alive = () => {
    clearTimeout(silence);
    silence = setTimeout(() => connection.abort(), SILENCE_MS);
  };
  const look = () => {
    clearTimeout(hidden);
    if (document.visibilityState === 'visible') return;
    hidden = setTimeout(() => connection.abort(), HIDDEN_MS);
  };
  look();
  document.addEventListener('visibilitychange', look);
  return {
    alive,
    end() {
      clearTimeout(silence);
      clearTimeout(hidden);
      document.removeEventListener('visibilitychange', look);
    },
  };
}

function visible(signal: AbortSignal): Promise<void> | undefined {
  if (document.visibilityState === 'visible') return undefined;
  return firstEvent([
    [document, 'visibilitychange'],
    [signal, 'abort'],
  ]);
}

/** Waits, but no longer than until the network is back or the page is visible. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  const events: readonly Occasion[] = [
    [window, 'online'],
    [document, 'visibilitychange'],
    [signal, 'abort'],
  ];
  return firstEvent(events, ms);
}

export function firstEvent(events: readonly Occasion[], timeoutMs?: number): Promise<void> {
  const over = new AbortController();
  return new Promise<void>((resolve) => {
    const done = () => {
      over.abort();
      resolve();
    };
    if (timeoutMs !== undefined) {
      const timer = setTimeout(done, timeoutMs);
      over.signal.addEventListener('abort', () => clearTimeout(timer));
    }
    for (const [target, type] of events) target.addEventListener(type, done, over);
  });
}

// Messages that the gateway has not confirmed: kept in this browser and sent again under the same
// id until it confirms them, also after the page was closed. The gateway recognises a repeat by its
// id.

import { chatPath, RefusedError, type WholeApi } from './api.ts';
import type { Amendment } from './chat/events.ts';
import type { UploadedFile } from './chat/parts.tsx';

const KEY = 'nanobot.unsent';
const RETRY_MIN_MS = 1000;
const RETRY_MAX_MS = 15_000;

export type Also = {
  /** The token of the choice whose label the text is. */
  readonly press?: string;
  /** Uploaded already. */
  readonly files?: readonly UploadedFile[];
  /** The message that this changes, or wants answered again. */
  readonly amends?: Amendment;
};
export type Unsent = Also & {
  readonly chat: string;
  readonly clientId: string;
  readonly text: string;
};

type Told = (message: Unsent, reason: string) => void;

export function createOutbox(
  api: Pick<WholeApi, 'postJson'>,
  { onWaiting, onRefused }: { readonly onWaiting: Told; readonly onRefused: Told },
) {
  const busy = new Set<string>();

  /** Sends one after the other per chat, so that the order stays. */
  async function drain(chat: string): Promise<void> {
    if (busy.has(chat)) return;
    busy.add(chat);
    for (let failures = 0; ; ) {
      const [message] = read().filter((one) => one.chat === chat);
      if (message === undefined) break;
      try {
        await api.postJson(`${chatPath(chat)}/messages`, {
          clientId: message.clientId,
          text: message.text,
          press: message.press,
          files: message.files?.map(({ media, name }) => ({ media, name })),
          amends: message.amends,
        });
        failures = 0;
        forget(message);
      } catch (error) {
        if (error instanceof RefusedError && error.isFinal) {
          forget(message);
          onRefused(message, error.message);
          continue;
        }
        failures += 1;
        onWaiting(message, error instanceof RefusedError ? error.message : '');
        const waitMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** (failures - 1));
        await pause(Math.max(waitMs, error instanceof RefusedError ? error.retryAfterMs : 0));
      }
    }
    busy.delete(chat);
  }

  return {
    send(chat: string, text: string, also: Also = {}): Unsent {
      const clientId = crypto.getRandomValues(new BigUint64Array(2)).join('-');
      const message = { chat, clientId, text, ...also };
      write([...read(), message]);
      void drain(chat);
      return message;
    },
    /** The unsent messages of the chat, oldest first. */
    waiting: (chat: string) => read().filter((message) => message.chat === chat),
    /** Resumes messages that an earlier page left. */
    resume() {
      for (const chat of new Set(read().map((message) => message.chat))) void drain(chat);
    },
  };
}

function read(): readonly Unsent[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(stored) ? stored : [];
  } catch {
    return [];
  }
}

const write = (messages: readonly Unsent[]) => localStorage.setItem(KEY, JSON.stringify(messages));
const forget = ({ clientId }: Unsent) => write(read().filter((one) => one.clientId !== clientId));

/** Waits, but no longer than until the network is back. */
function pause(ms: number): Promise<void> {
  const over = new AbortController();
  return new Promise<void>((resolve) => {
    const done = () => {
      over.abort();
      resolve();
    };
    const timer = setTimeout(done, ms);
    over.signal.addEventListener('abort', () => clearTimeout(timer));
    window.addEventListener('online', done, over);
  });
}

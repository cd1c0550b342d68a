// Messages that the gateway has not confirmed: kept in this browser and sent again under the same
// id until it confirms them, also after the page was closed. The gateway recognises a repeat by its
// id. One that it refuses for good is kept until the person takes it back. Each has an entry of its
// own in the browser's storage, which several tabs may write at once.

import { chatPath, RefusedError, type WholeApi } from './api.ts';
import type { Amendment } from './chat/events.ts';
import { storedObject, type UploadedFile } from './chat/parts.tsx';
import { firstEvent } from './connection.ts';

const PREFIX = 'nanobot.unsent.';
/** Where earlier versions kept all of them. */
const EARLIER = 'nanobot.unsent';
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
  /** Grows from message to message. */
  readonly order: number;
  /** Why the gateway will not take it: it is not sent again. */
  readonly refusal?: string;
};

/** @param onFailed is told of each attempt that failed, with the reason where it is repeated */
export function createOutbox(
  api: Pick<WholeApi, 'postJson'>,
  onFailed: (message: Unsent, reason?: string) => void,
) {
  const busy = new Set<string>();

  /** Sends one after the other per chat, so that the order stays. */
  async function drain(chat: string): Promise<void> {
    if (busy.has(chat)) return;
    busy.add(chat);
    for (let failures = 0; ; ) {
      const message = read().find((one) => one.chat === chat && one.refusal === undefined);
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
          const refused = { ...message, refusal: error.message };
          // The message that it would have changed still stands in the chat.
          if (message.amends === undefined) write(refused);
          else forget(message);
          onFailed(refused);
          continue;
        }
        failures += 1;
        onFailed(message, error instanceof RefusedError ? error.message : '');
        const waitMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** (failures - 1));
        const askedMs = error instanceof RefusedError ? error.retryAfterMs : 0;
        // No longer than until the network is back.
        await firstEvent([[window, 'online']], Math.max(waitMs, askedMs));
      }
    }
    busy.delete(chat);
  }

  return {
    /** Throws where the browser's storage is full. */
    send(chat: string, text: string, also: Also = {}): Unsent {
      const clientId = crypto.getRandomValues(new BigUint64Array(2)).join('-');
      const message = { chat, clientId, text, ...also, order: (read().at(-1)?.order ?? 0) + 1 };
      write(message);
      void drain(chat);
      return message;
    },
    forget,
    /** The unsent messages of the chat, oldest first. */
    waiting: (chat: string) => read().filter((message) => message.chat === chat),
    /** Resumes messages that an earlier page left. */
    resume() {
      Object.values(storedObject<Unsent>(EARLIER)).forEach((message, order) => {
        write({ ...message, order });
      });
      localStorage.removeItem(EARLIER);
      for (const chat of new Set(read().map((message) => message.chat))) void drain(chat);
    },
  };
}

function read(): readonly Unsent[] {
  return Object.keys(localStorage)
    .filter((key) => key.startsWith(PREFIX))
    .flatMap((key): Unsent | [] => JSON.parse(localStorage.getItem(key) ?? '[]'))
    .sort((one, other) => one.order - other.order);
}

function write(message: Unsent): void {
  localStorage.setItem(`${PREFIX}${message.clientId}`, JSON.stringify(message));
}

function forget({ clientId }: Unsent): void {
  localStorage.removeItem(`${PREFIX}${clientId}`);
}

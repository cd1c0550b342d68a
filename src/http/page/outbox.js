// Messages that the gateway has not confirmed: kept in this browser and sent again under the same
// id until it confirms them, also after the page was closed. The gateway recognises a repeat by its
// id.

import { chatPath, RefusedError } from './api.js';

const KEY = 'nanobot.unsent';
const RETRY_MIN_MS = 1000;
const RETRY_MAX_MS = 15_000;

export function createOutbox(api, { onWaiting, onRefused }) {
  const busy = new Set();

  /** Sends one after the other per chat, so that the order stays. */
  async function drain(chat) {
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
        await pause(Math.max(waitMs, error.retryAfterMs ?? 0));
      }
    }
    busy.delete(chat);
  }

  return {
    /**
     * `press`: the token of the choice whose label the text is; `files` are uploaded already;
     * `amends`: the message whose text this replaces.
     */
    send(chat, text, { press, files, amends } = {}) {
      const message = {
        chat,
        clientId: crypto.getRandomValues(new BigUint64Array(2)).join('-'),
        text,
        press,
        files,
        amends,
      };
      write([...read(), message]);
      drain(chat);
      return message;
    },
    /** The unsent messages of the chat, oldest first. */
    waiting: (chat) => read().filter((message) => message.chat === chat),
    /** Resumes messages that an earlier page left. */
    resume() {
      for (const chat of new Set(read().map((message) => message.chat))) drain(chat);
    },
  };
}

function read() {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(stored) ? stored : [];
  } catch {
    return [];
  }
}

const write = (messages) => localStorage.setItem(KEY, JSON.stringify(messages));
const forget = ({ clientId }) => write(read().filter((one) => one.clientId !== clientId));

/** Waits, but no longer than until the network is back. */
function pause(ms) {
  const over = new AbortController();
  return new Promise((resolve) => {
    const done = () => {
      over.abort();
      resolve();
    };
    const timer = setTimeout(done, ms);
    over.signal.addEventListener('abort', () => clearTimeout(timer));
    window.addEventListener('online', done, over);
  });
}

// The live topic: pictures of running turns, best effort. Each subscriber holds the newest picture
// per turn and nothing else, so a slow one costs memory for the turns that run, never for history.

import { type AccountName, accountName } from '../message/account.ts';
import type { LiveUpdate } from '../message/event.ts';
import type { TurnId } from '../message/ids.ts';
import type { LiveTopic } from './bus.ts';

/** Turns a subscriber may lag behind on; beyond that the oldest picture is dropped. */
const MAX_HELD_TURNS = 10_000;

/** `shown`: what a subscriber gets of a picture, asked only for those it takes. */
export function createLiveTopic(shown: (update: LiveUpdate) => LiveUpdate): LiveTopic {
  const mailboxes = new Map<AccountName, Set<Mailbox>>();
  return {
    publish(update) {
      for (const mailbox of mailboxes.get(accountName(update.chat)) ?? []) mailbox.put(update);
    },
    subscribe(account, signal) {
      const mailbox = new Mailbox();
      const ofAccount = mailboxes.get(account) ?? new Set();
      mailboxes.set(account, ofAccount.add(mailbox));
      const onEnd = () => {
        ofAccount.delete(mailbox);
        if (ofAccount.size === 0 && mailboxes.get(account) === ofAccount) mailboxes.delete(account);
      };
      return mailbox.read(signal, shown, onEnd);
    },
  };
}

class Mailbox {
  readonly #newest = new Map<TurnId, LiveUpdate>();
  #wake: (() => void) | undefined;

  put(update: LiveUpdate): void {
    // A turn keeps its place in the line, so one that changes often cannot be starved.
    this.#newest.set(update.turnId, update);
    const [oldest] = this.#newest.keys();
    if (this.#newest.size > MAX_HELD_TURNS && oldest !== undefined) this.#newest.delete(oldest);
    this.#wake?.();
  }

  async *read(
    signal: AbortSignal,
    shown: (update: LiveUpdate) => LiveUpdate,
    onEnd: () => void,
  ): AsyncGenerator<LiveUpdate, void, void> {
    const onAbort = () => this.#wake?.();
    signal.addEventListener('abort', onAbort);
    try {
      while (!signal.aborted) {
        const [update] = this.#newest.values();
        if (update === undefined) {
          await this.#arrival();
        } else {
          this.#newest.delete(update.turnId);
          yield shown(update);
        }
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      onEnd();
    }
  }

  async #arrival(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = undefined;
  }
}

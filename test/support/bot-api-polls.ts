// getUpdates: long polling with Telegram's rules. An update is forgotten only when a later request
// asks for ids above it; of two polls at once the older is ended with 409.

import type { Ledger } from './bot-api-ledger.ts';
import type { Answer, Payload } from './bot-api-methods.ts';

const MAX_UPDATES = 100;
const DEFAULT_LIMIT = 100;
const MAX_TIMEOUT_SECS = 50;

export const POLL_PARAMS = ['offset', 'limit', 'timeout', 'allowed_updates'];

const OVERLAP: Answer = {
  ok: false,
  error_code: 409,
  description:
    'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running',
};

const WEBHOOK: Answer = {
  ok: false,
  error_code: 409,
  description:
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
};

export class Polls {
  readonly #ledger: Ledger;
  readonly #maxPollMs: number;
  #endCurrent: ((answer: Answer) => void) | undefined;

  constructor(ledger: Ledger, maxPollMs: number) {
    this.#ledger = ledger;
    this.#maxPollMs = maxPollMs;
  }

  get isWaiting(): boolean {
    return this.#endCurrent !== undefined;
  }

  /** Resolves with updates, or with none when the timeout is over; `gone` is the client's leaving. */
  async poll(payload: Payload, webhook: string, gone: AbortSignal): Promise<Answer> {
    if (webhook !== '') return WEBHOOK;
    this.#endCurrent?.(OVERLAP);
    const offset = payload['offset'];
    this.#ledger.confirm(typeof offset === 'number' ? offset : undefined);
    const limit = Math.min(MAX_UPDATES, Math.max(1, Number(payload['limit'] ?? DEFAULT_LIMIT)));
    const ready = () => this.#ledger.waiting(limit);
    const timeoutSecs = Math.min(MAX_TIMEOUT_SECS, Math.max(0, Number(payload['timeout'] ?? 0)));
    if (ready().length > 0 || timeoutSecs === 0) return { ok: true, result: ready() };
    return this.#wait(ready, Math.min(timeoutSecs * 1000, this.#maxPollMs), gone);
  }

  #wait(ready: () => readonly unknown[], waitMs: number, gone: AbortSignal): Promise<Answer> {
    return new Promise((resolve) => {
      const end = (answer: Answer) => {
        clearTimeout(timer);
        listening[Symbol.dispose]();
        gone.removeEventListener('abort', leave);
        if (this.#endCurrent === end) this.#endCurrent = undefined;
        resolve(answer);
      };
      const leave = () => end({ ok: true, result: [] });
      const timer = setTimeout(leave, waitMs);
      const listening = this.#ledger.onChange(() => {
        const updates = ready();
        if (updates.length > 0) end({ ok: true, result: updates });
      });
      gone.addEventListener('abort', leave, { once: true });
      this.#endCurrent = end;
    });
  }
}

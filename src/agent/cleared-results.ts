// Which results of tools are no longer shown, by conversation: what is cleared stays cleared in later
// turns, so that what they send begins with the same words. Only memory: after a restart the same is
// cleared again as soon as it has to be.

import type { SessionKey } from '../kernel/message/ids.ts';
import type { ResultKey } from './rules/clear-results.ts';

const MAX_SESSIONS = 256;
const NOTHING: ReadonlySet<ResultKey> = new Set();

export class ClearedResults {
  readonly #bySession = new Map<SessionKey, ReadonlySet<ResultKey>>();

  of(session: SessionKey): ReadonlySet<ResultKey> {
    return this.#bySession.get(session) ?? NOTHING;
  }

  keep(session: SessionKey, cleared: ReadonlySet<ResultKey>): void {
    this.#bySession.delete(session);
    this.#bySession.set(session, cleared);
    const [oldest] = this.#bySession.keys();
    if (this.#bySession.size > MAX_SESSIONS && oldest !== undefined) this.#bySession.delete(oldest);
  }
}

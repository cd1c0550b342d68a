// What processes on one database tell each other with a commit (NOTIFY): who wrote, whether there
// may be work, and the scopes of changed rows.

import { fieldsOf, parseJson } from '../../../../lib/json/json.ts';
import type { Clock } from '../../../../lib/time/clock.ts';
import type { News } from './commits.ts';

/** PostgreSQL refuses 8000 bytes. */
const MAX_CHARS = 2000;
/** News that arrive together are heard once. */
const GATHER_MS = 4;

export function payloadOf(owner: string, { hasWork, scopes }: News): string {
  const work = hasWork ? { w: 1 } : {};
  const whole = JSON.stringify({ o: owner, ...work, s: scopes });
  return whole.length > MAX_CHARS ? JSON.stringify({ o: owner, ...work }) : whole;
}

/** @param clock of the machine */
export function createNews(owner: string, clock: Clock) {
  let revision = 0;
  /** Of all scopes: something was missed. */
  let base = 0;
  const ofScopes = new Map<string, number>();
  const listeners = new Set<() => void>();
  let gathering: Disposable | undefined;

  function tell(): void {
    gathering ??= clock.timer(GATHER_MS, () => {
      gathering = undefined;
      for (const hear of listeners) hear();
    });
  }

  function missed(): void {
    revision += 1;
    base = revision;
    ofScopes.clear();
    tell();
  }

  return {
    tell,
    /** Something may have been written that was not heard of. */
    missed,
    hear(payload: string): void {
      const { o, w, s } = fieldsOf(parseJson(payload)) ?? {};
      if (o === owner) return;
      if (!Array.isArray(s)) {
        missed();
        return;
      }
      revision += 1;
      for (const scope of s) ofScopes.set(String(scope), revision);
      if (w === 1) tell();
    },
    revision: (scope?: string): number =>
      scope === undefined ? revision : Math.max(base, ofScopes.get(scope) ?? 0),
    listen(hear: () => void): Disposable {
      listeners.add(hear);
      return { [Symbol.dispose]: () => void listeners.delete(hear) };
    },
    close: () => gathering?.[Symbol.dispose](),
  };
}

// What processes on one database tell each other with a commit (NOTIFY): who wrote, the scopes of
// changed rows, and what may concern others. A process that is not concerned asks for nothing.

import { fieldsOf, parseJson } from '../../../../lib/json/json.ts';
import type { Clock } from '../../../../lib/time/clock.ts';
import { type SessionKey, sessionKey } from '../../../message/ids.ts';
import type { SqlValue } from '../key-value.ts';
import type { LaneNews, StoreNews } from '../shared.ts';

/** What a transaction changed, for other processes. */
export type News = {
  /** Rows of these scopes. */
  readonly scopes: readonly string[];
  readonly sessions: readonly string[];
  readonly accounts: readonly string[];
  readonly resources: readonly string[];
  /** May concern each process. */
  readonly isAnything: boolean;
};

/** PostgreSQL refuses 8000 bytes; a session is followed by its owner. */
const MAX_BYTES = 3000;
const MAX_SESSIONS = 40;
/** News that arrive together are heard once. */
const GATHER_MS = 4;

/** Whether another process of several needs to hear it. */
export const isWorthTelling = (news: News) =>
  news.isAnything ||
  [news.scopes, news.sessions, news.accounts, news.resources].some((names) => names.length > 0);

/**
 * The statement that tells it, with its values: how each session and resource is at the end of the
 * transaction. Too much becomes "anything".
 */
export function telling(owner: string, news: News): readonly [sql: string, ...SqlValue[]] {
  const { scopes, sessions, accounts, resources, isAnything } = news;
  const lists = [scopes, sessions, accounts, resources].map((names) => JSON.stringify(names));
  const isTooMuch = Buffer.byteLength(lists.join('')) > MAX_BYTES || sessions.length > MAX_SESSIONS;
  if (isTooMuch || isAnything) {
    const all = { o: owner, w: 1, ...(isTooMuch ? {} : { s: scopes }) };
    return [`SELECT pg_notify('nanobot', ?)`, JSON.stringify(all)];
  }
  if (sessions.length + resources.length === 0) {
    const plain = { o: owner, s: scopes, a: accounts };
    return [`SELECT pg_notify('nanobot', ?)`, JSON.stringify(plain)];
  }
  return [
    `SELECT pg_notify('nanobot', json_build_object('o', ?1::text, 's', ?2::json, 'a', ?4::json,
       't', (SELECT json_agg(json_build_array(session, ready_at, owner, stop_reason IS NOT NULL))
         FROM session_lane WHERE session IN (SELECT json_array_elements_text(?3::json))),
       'l', (SELECT json_agg(json_build_array(resource, owner))
         FROM leader WHERE resource IN (SELECT json_array_elements_text(?5::json))))::text)`,
    ...[owner, ...lists],
  ];
}

type Waiting = {
  isAnything: boolean;
  isAboutLeads: boolean;
  readonly lanes: Map<string, LaneNews>;
  readonly scopes: Set<string>;
  readonly accounts: Set<string>;
};

type NewsDeps = {
  readonly owner: string;
  /** Of the machine. */
  readonly clock: Clock;
  /** Another process leads this now, or nobody. */
  onLeader(resource: string, by: string | undefined): void;
};

export function createNews({ owner, clock, onLeader }: NewsDeps) {
  let revision = 0;
  /** Of all scopes: something was missed. */
  let base = 0;
  const ofScopes = new Map<string, number>();
  const listeners = new Set<(news: StoreNews) => void>();
  let waiting: Waiting | undefined;
  let gathering: Disposable | undefined;

  function gathered(): Waiting {
    gathering ??= clock.timer(GATHER_MS, () => {
      const news = waiting;
      gathering = undefined;
      waiting = undefined;
      if (news === undefined) return;
      for (const hear of listeners) hear({ ...news, lanes: [...news.lanes.values()] });
    });
    waiting ??= {
      ...{ isAnything: false, isAboutLeads: false },
      ...{ lanes: new Map(), scopes: new Set(), accounts: new Set() },
    };
    return waiting;
  }

  function tell(): void {
    gathered().isAnything = true;
  }

  function distrust(): void {
    revision += 1;
    base = revision;
    ofScopes.clear();
  }

  function missed(): void {
    distrust();
    tell();
  }

  function hearOfLanes(lanes: readonly unknown[]): void {
    for (const lane of lanes) {
      const [session, readyAt, holder, stopped] = Array.isArray(lane) ? lane : [];
      gathered().lanes.set(String(session), {
        session: sessionKey(String(session)),
        readyAt: typeof readyAt === 'number' ? readyAt : undefined,
        isOwn: holder === owner,
        isStopped: stopped === true,
      });
    }
  }

  function hearOfLeads(leads: readonly unknown[]): void {
    for (const lead of leads) {
      const [resource, by] = Array.isArray(lead) ? lead : [];
      onLeader(String(resource), typeof by === 'string' ? by : undefined);
      gathered().isAboutLeads = true;
    }
  }

  return {
    /** Other processes have come or gone. */
    tell,
    overdue(session: SessionKey): void {
      const news = { session, readyAt: 0, isOwn: false, isStopped: false };
      gathered().lanes.set(session, news);
    },
    /** What is in memory may be old, until others can be heard again. */
    distrust,
    /** Something may have been written that was not heard of. */
    missed,
    hear(payload: string): void {
      const { o, w, s, t: lanes, a: accounts, l: leads } = fieldsOf(parseJson(payload)) ?? {};
      if (o === owner) return;
      if (!Array.isArray(s)) {
        missed();
        return;
      }
      revision += 1;
      for (const scope of s) {
        ofScopes.set(String(scope), revision);
        gathered().scopes.add(String(scope));
      }
      if (w === 1) tell();
      if (Array.isArray(lanes)) hearOfLanes(lanes);
      if (Array.isArray(leads)) hearOfLeads(leads);
      if (Array.isArray(accounts)) {
        for (const account of accounts) gathered().accounts.add(String(account));
      }
    },
    revision: (scope?: string): number =>
      scope === undefined ? revision : Math.max(base, ofScopes.get(scope) ?? 0),
    listen(hear: (news: StoreNews) => void): Disposable {
      listeners.add(hear);
      return { [Symbol.dispose]: () => void listeners.delete(hear) };
    },
    close: () => gathering?.[Symbol.dispose](),
  };
}

// Who may ask: holders of the gateway's token, and pages that redeemed a one-time code for a session.
// What is stored of a session is a hash keyed by the token, so a changed token ends every one. How
// often a wrong token may be tried is left to authentication.ts.

import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { KeyValueStore } from '../kernel/bus/store/store.ts';
import { jsonRow, number, rowShape } from '../lib/json/json.ts';
import type { Logger } from '../lib/logger.ts';
import type { Clock } from '../lib/time/clock.ts';

/** A link waits for its click: 15 minutes. */
export const CODE_LIFETIME_MS = 15 * 60_000;
/** A page that nobody used for 30 days logs in again. */
export const SESSION_LIFETIME_MS = 30 * 86_400_000;
/** Use is noted at most once a day. */
const NOTE_USE_MS = 86_400_000;
const MAX_CODES = 10;
const MAX_SESSIONS = 50;
const SECRET_BYTES = 32;
const SESSION_PREFIX = 'page_';
const SESSION = /^page_[A-Za-z0-9_-]{43}$/;

/** Shows that a text is a session's secret, whether or not it still counts. */
export const isSessionSecret = (text: string) => SESSION.test(text);

export type Credential = {
  /** Only holders of the token may make links. */
  readonly kind: 'token' | 'session';
  /** Aborts when it counts no more: what it opened has to end. */
  readonly revoked: AbortSignal;
};

/** `expiresAt`: epoch milliseconds. */
type LoginCode = { readonly code: string; readonly expiresAt: number };

export interface Access {
  /** In constant time; undefined where it is another one. */
  byToken(offered: string): Credential | undefined;
  bySession(secret: string): Promise<Credential | undefined>;
  /** A code that opens one session, once. */
  makeCode(): LoginCode;
  /** The new session's secret; undefined where the code is wrong, used or expired. */
  redeem(code: string): Promise<string | undefined>;
  /** Holds this token from now on; another one ends all that was opened by the old. */
  useToken(token: string): Promise<void>;
  /** Ends every session, unused code and open stream. */
  revokeAll(): Promise<void>;
}

type AccessOptions = {
  /** Not blank. */
  readonly token: string;
  /** Holds the sessions over a restart. */
  readonly state: KeyValueStore;
  readonly clock: Clock;
  readonly log: Logger;
  randomBytes(size: number): Uint8Array;
};

type Session = { readonly usedAt: number; readonly ending: AbortController };

const SESSION_ROW = rowShape<Pick<Session, 'usedAt'>>({ usedAt: number });

export async function openAccess(options: AccessOptions): Promise<Access> {
  const access = new StoredAccess(options);
  await access.load();
  return access;
}

class StoredAccess implements Access {
  readonly #options: AccessOptions;
  /** By the hash of their secret, the one used longest ago first. */
  readonly #sessions = new Map<string, Session>();
  /** Hash to the end of its time. */
  readonly #codes = new Map<string, number>();
  #token: string;
  #ofToken = new AbortController();

  constructor(options: AccessOptions) {
    this.#options = options;
    this.#token = options.token;
  }

  async load(): Promise<void> {
    for (const { key, value } of await this.#options.state.list('')) {
      const row = jsonRow(value, SESSION_ROW);
      if (row !== undefined) this.#sessions.set(key, { ...row, ending: new AbortController() });
    }
  }

  byToken(offered: string): Credential | undefined {
    // A blank token opens nothing, whoever set it.
    if (this.#token === '' || !timingSafeEqual(digest(offered), digest(this.#token))) {
      return undefined;
    }
    return { kind: 'token', revoked: this.#ofToken.signal };
  }

  async bySession(secret: string): Promise<Credential | undefined> {
    if (!isSessionSecret(secret)) return undefined;
    const key = this.#keyOf(secret);
    const session = this.#sessions.get(key);
    if (session === undefined) return undefined;
    const { clock } = this.#options;
    const unusedMs = clock.now() - session.usedAt;
    if (unusedMs > SESSION_LIFETIME_MS) {
      await this.#end([key]);
      return undefined;
    }
    if (unusedMs > NOTE_USE_MS) await this.#note(key, { ...session, usedAt: clock.now() });
    return { kind: 'session', revoked: session.ending.signal };
  }

  makeCode(): LoginCode {
    const code = this.#secret();
    const expiresAt = this.#options.clock.now() + CODE_LIFETIME_MS;
    this.#codes.set(hashOf(code), expiresAt);
    const [oldest] = this.#codes.keys();
    if (this.#codes.size > MAX_CODES && oldest !== undefined) this.#codes.delete(oldest);
    return { code, expiresAt };
  }

  async redeem(code: string): Promise<string | undefined> {
    const hash = hashOf(code);
    const expiresAt = this.#codes.get(hash) ?? 0;
    // Gone before anything is awaited, so that two who click at once do not both get in.
    this.#codes.delete(hash);
    if (expiresAt <= this.#options.clock.now()) return undefined;
    const secret = SESSION_PREFIX + this.#secret();
    const session = { usedAt: this.#options.clock.now(), ending: new AbortController() };
    await this.#note(this.#keyOf(secret), session);
    const surplus = [...this.#sessions.keys()].slice(0, -MAX_SESSIONS);
    await this.#end(surplus);
    return session.ending.signal.aborted ? undefined : secret;
  }

  async useToken(token: string): Promise<void> {
    if (token === this.#token) return;
    this.#token = token;
    await this.revokeAll();
  }

  async revokeAll(): Promise<void> {
    this.#codes.clear();
    this.#ofToken.abort();
    this.#ofToken = new AbortController();
    await this.#end([...this.#sessions.keys()]);
  }

  /** Counts from here on even where the store fails: then it ends with this process. */
  async #note(key: string, session: Session): Promise<void> {
    this.#sessions.delete(key);
    this.#sessions.set(key, session);
    const { state, log } = this.#options;
    await state
      .set(key, JSON.stringify({ usedAt: session.usedAt }))
      .catch((error) => log.warn('login not stored', { error }));
  }

  async #end(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      this.#sessions.get(key)?.ending.abort();
      this.#sessions.delete(key);
    }
    if (keys.length === 0) return;
    await this.#options.state.setMany(keys.map((key) => ({ key, value: undefined })));
  }

  #secret(): string {
    return Buffer.from(this.#options.randomBytes(SECRET_BYTES)).toString('base64url');
  }

  #keyOf(secret: string): string {
    return createHmac('sha256', this.#token).update(secret).digest('hex');
  }
}

const digest = (text: string) => createHash('sha256').update(text).digest();
const hashOf = (text: string) => digest(text).toString('hex');

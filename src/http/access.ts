// Credentials: the gateway's token, and sessions of pages that redeemed a one-time code. Only a
// hash of a session keyed by the token is stored, so a changed token ends every session.
// authentication.ts limits tries with a wrong token.

import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { KeyValueStore } from '../kernel/bus/store/store.ts';
import type { Kernel } from '../kernel/feature.ts';
import { RecentMap } from '../lib/async.ts';
import { jsonRow, number, rowShape } from '../lib/json/json.ts';

/** How long a login link stays valid: 15 minutes. */
export const CODE_LIFETIME_MS = 15 * 60_000;
/** A page that was not used for 30 days must log in again. */
export const SESSION_LIFETIME_MS = 30 * 86_400_000;
/** Use is recorded at most once a day. */
const NOTE_USE_MS = 86_400_000;
const MAX_CODES = 10;
const MAX_SESSIONS = 50;
const SECRET_BYTES = 32;
const SESSION_PREFIX = 'page_';
/** Of the rows of codes that any process may redeem. */
const CODE = 'code/';
const SESSION = /^page_[A-Za-z0-9_-]{43}$/;

/** Whether a text has the form of a session's secret, valid or not. */
export const isSessionSecret = (text: string) => SESSION.test(text);

export type Credential = {
  /** Only holders of the token may create links. */
  readonly kind: 'token' | 'session';
  /** Aborts when the credential is no longer valid: what it opened must end. */
  readonly revoked: AbortSignal;
};

/** `expiresAt`: epoch milliseconds. */
type LoginCode = { readonly code: string; readonly expiresAt: number };

/** @see openAccess */
export type Access = Awaited<ReturnType<typeof openAccess>>;

type AccessOptions = Pick<Kernel, 'clock' | 'log'> & {
  /** Not blank. */
  readonly token: string;
  /** Stores the sessions across restarts. */
  readonly state: KeyValueStore;
  randomBytes(size: number): Uint8Array;
  /** Where several processes serve the page: changes when another one has written. */
  revision?(): number;
};

type Session = { readonly usedAt: number; readonly ending: AbortController };

const SESSION_ROW = rowShape<Pick<Session, 'usedAt'>>({ usedAt: number });

export async function openAccess({
  token: first,
  state,
  clock,
  log,
  randomBytes,
  revision,
}: AccessOptions) {
  /** By the hash of their secret. */
  const sessions = new Map<string, Session>();
  /** Not in the store yet: no other process has ended them. */
  const storing = new Set<string>();
  /** Those that this process ended. A read of the store under way may still contain them. */
  const over = new Set<string>();
  /** Hash to expiry time. */
  const codes = new RecentMap<string, number>(MAX_CODES);
  let token = first;
  let ofToken = new AbortController();
  let read = revision?.();
  let reading = readAll();
  await reading;

  async function readAll(): Promise<void> {
    const before = [...sessions].filter(([key]) => !storing.has(key));
    const stored = new Set<string>();
    for (const { key, value } of await state.list('')) {
      const row = jsonRow(value, SESSION_ROW);
      if (row === undefined) continue;
      stored.add(key);
      if (sessions.has(key) || over.has(key)) continue;
      sessions.set(key, { ...row, ending: new AbortController() });
    }
    for (const [key, { ending }] of before) {
      if (stored.has(key)) continue;
      ending.abort();
      sessions.delete(key);
    }
  }

  /** Another process may have begun or ended sessions. */
  function catchUp(): Promise<void> {
    const now = revision?.();
    if (now !== read) {
      read = now;
      reading = readAll();
      // The next request tries again.
      reading.catch(() => {
        read = undefined;
      });
    }
    return reading;
  }

  /** Of two processes only one gets it. */
  async function takeCode(hash: string): Promise<number> {
    const key = CODE + hash;
    const from = await state.get(key);
    if (from === undefined) return 0;
    return (await state.swap({ key, from, to: undefined }, [])) ? Number(from) : 0;
  }

  const newSecret = () => Buffer.from(randomBytes(SECRET_BYTES)).toString('base64url');
  const keyOf = (secret: string) => createHmac('sha256', token).update(secret).digest('hex');

  /** Takes effect even if the store fails: the session then ends with this process. */
  async function noteUse(key: string, ending: AbortController): Promise<void> {
    const usedAt = clock.now();
    sessions.set(key, { usedAt, ending });
    storing.add(key);
    await state
      .set(key, JSON.stringify({ usedAt }))
      .catch((error) => log.warn('login not stored', { error }));
    storing.delete(key);
  }

  async function end(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      sessions.get(key)?.ending.abort();
      sessions.delete(key);
      over.add(key);
    }
    if (keys.length === 0) return;
    await state.setMany(keys.map((key) => ({ key, value: undefined })));
  }

  /** Ends every session, unused code and open stream. */
  async function revokeAll(): Promise<void> {
    codes.clear();
    ofToken.abort();
    ofToken = new AbortController();
    await end([...sessions.keys()]);
  }

  return {
    revokeAll,
    /** In constant time; undefined for another token, or a blank one. */
    byToken(offered: string): Credential | undefined {
      if (token === '' || !timingSafeEqual(digest(offered), digest(token))) return undefined;
      return { kind: 'token', revoked: ofToken.signal };
    },
    async bySession(secret: string): Promise<Credential | undefined> {
      if (!isSessionSecret(secret)) return undefined;
      await catchUp();
      const key = keyOf(secret);
      // The news of one begun in another process may be on its way.
      const isNews = revision !== undefined && !sessions.has(key);
      if (isNews && (await state.get(key)) !== undefined) await readAll();
      const session = sessions.get(key);
      if (session === undefined) return undefined;
      const unusedMs = clock.now() - session.usedAt;
      if (unusedMs > SESSION_LIFETIME_MS) {
        await end([key]);
        return undefined;
      }
      if (unusedMs > NOTE_USE_MS) await noteUse(key, session.ending);
      return { kind: 'session', revoked: session.ending.signal };
    },
    /** A code that opens one session, once. */
    async makeCode(): Promise<LoginCode> {
      const code = newSecret();
      const expiresAt = clock.now() + CODE_LIFETIME_MS;
      codes.set(hashOf(code), expiresAt);
      if (revision !== undefined) {
        // The process that gets the next request knows it.
        await state
          .set(CODE + hashOf(code), String(expiresAt))
          .catch((error) => log.warn('login code not stored', { error }));
      }
      return { code, expiresAt };
    },
    /** The new session's secret; undefined if the code is wrong, used or expired. */
    async redeem(code: string): Promise<string | undefined> {
      const hash = hashOf(code);
      const known = codes.get(hash) ?? 0;
      // Removed before any await, so that of two concurrent clicks only one gets in.
      codes.delete(hash);
      const expiresAt = revision === undefined ? known : await takeCode(hash);
      if (expiresAt <= clock.now()) return undefined;
      const secret = SESSION_PREFIX + newSecret();
      const ending = new AbortController();
      await noteUse(keyOf(secret), ending);
      const byUse = [...sessions].toSorted(([, one], [, other]) => one.usedAt - other.usedAt);
      await end(byUse.slice(0, -MAX_SESSIONS).map(([ended]) => ended));
      return ending.signal.aborted ? undefined : secret;
    },
    /** Switches to this token; a different one ends everything opened with the old one. */
    async useToken(next: string): Promise<void> {
      if (next === token) return;
      token = next;
      await revokeAll();
    },
  };
}

const digest = (text: string) => createHash('sha256').update(text).digest();
const hashOf = (text: string) => digest(text).toString('hex');

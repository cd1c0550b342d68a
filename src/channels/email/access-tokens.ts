// Access tokens of a mailbox (RFC 6749 section 6). The grant of the mailbox is one row of the store:
// one process refreshes it at a time, and what the provider issued is on disk before it is used. So
// a provider that voids a refresh token at its first use is not asked twice with the same one. No
// error text contains a token.

import { hash } from 'node:crypto';
import { z } from 'zod';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { BACKOFF, ChannelError, NEVER } from '../../kernel/message/errors.ts';
import { parseJson } from '../../lib/json/json.ts';
import { fetchThrough, proxyErrorIn } from '../../lib/net/proxies.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { OAuth2Provider, OAuth2Settings } from './settings.ts';

export const TOKEN_REFUSED = 'mail_token_refused';

const REQUEST_TIMEOUT_MS = 30_000;
const MAX_ANSWER_CHARS = 64 * 1024;
/** RFC 6749 section 5.1 makes the lifetime optional; an hour is the usual value. */
const USUAL_LIFETIME_SECS = 3600;
const RENEW_BEFORE_END_MS = 5 * 60_000;
/** Longer than a request: a claim that is older belongs to a process that died. */
const CLAIM_MS = REQUEST_TIMEOUT_MS + 5000;
const LOOK_AGAIN_MS = 250;

/** RFC 6749 section 5.2: errors that a retry cannot fix. */
const FINAL_ERRORS = new Set([
  'invalid_grant',
  'invalid_client',
  'invalid_request',
  'invalid_scope',
  'unauthorized_client',
  'unsupported_grant_type',
]);

export type GrantRows = Pick<KeyValueStore, 'get' | 'set' | 'swap'>;

/** What the owner of the mailbox granted; epoch milliseconds. */
export type Grant = {
  readonly refreshToken: string;
  readonly accessToken?: string | undefined;
  readonly renewAt?: number | undefined;
};

const grantSchema = z.object({
  refreshToken: z.string(),
  accessToken: z.string().optional(),
  renewAt: z.number().optional(),
  /** A process refreshes it until then. */
  claimedUntil: z.number().optional(),
  /** The owner was told that the provider refuses it. */
  isReported: z.boolean().optional(),
});
type StoredGrant = z.infer<typeof grantSchema>;

const write = (grant: StoredGrant) => JSON.stringify(grant);

/** A row of an earlier version is the refresh token itself. */
function read(row: string | undefined): StoredGrant | undefined {
  if (row === undefined) return undefined;
  const grant = grantSchema.safeParse(parseJson(row));
  return grant.success ? grant.data : { refreshToken: row };
}

/**
 * Named by the configured refresh token, so that a new one in the configuration takes effect, else
 * by the mailbox that was logged in to.
 */
function grantKey({ clientId, refreshToken }: OAuth2Settings, username: string): string {
  const origin = refreshToken === '' ? `\n${username}` : refreshToken;
  const name = hash('sha256', `${clientId}\n${origin}`);
  return `oauth2/${name.slice(0, 32)}`;
}

/** Keeps what a login gave, in place of an earlier grant. */
export function keepGrant(
  rows: GrantRows,
  settings: OAuth2Settings,
  username: string,
  grant: Grant,
): Promise<void> {
  return rows.set(grantKey(settings, username), write(grant));
}

type AccessTokensDeps = {
  readonly settings: OAuth2Settings;
  readonly username: string;
  readonly endpoint: Pick<OAuth2Provider, 'tokenUrl' | 'scope'>;
  /** The setting; default: none. */
  readonly proxy?: string;
  readonly clock: Clock;
  readonly state?: GrantRows | undefined;
};

export class AccessTokens {
  readonly #deps: AccessTokensDeps;
  readonly #rows: GrantRows;
  readonly #key: string;
  #token: string | undefined;
  #renewAt = 0;
  /** A server refused this one, whatever its lifetime. */
  #discarded: string | undefined;
  #underWay: Promise<string> | undefined;
  /** Issued while the store could not be written. */
  #unsaved: { readonly fresh: Grant; readonly used: string } | undefined;

  constructor(deps: AccessTokensDeps) {
    this.#deps = deps;
    this.#rows = deps.state ?? memoryRows();
    this.#key = grantKey(deps.settings, deps.username);
  }

  /** @throws ChannelError `mail_token_refused` if asking again is useless, else `mail_server` */
  async current(): Promise<string> {
    if (this.#token !== undefined && this.#deps.clock.now() < this.#renewAt) return this.#token;
    this.#underWay ??= this.#obtain().finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  /** Discards a token that a server refused, whatever its lifetime. */
  discard(refused: string): void {
    this.#discarded = refused;
    if (this.#token === refused) this.#token = undefined;
  }

  /** True once for each grant that the provider refuses: the owner has to be told. */
  async isNewlyRefused(): Promise<boolean> {
    const row = await this.#rows.get(this.#key);
    const grant = this.#granted(row);
    if (grant.isReported === true) return false;
    return this.#rows.swap(this.#change(row, { ...grant, isReported: true }), []);
  }

  /** The stored token if it is still good, else a new one, by whichever process is first. */
  async #obtain(): Promise<string> {
    const { clock } = this.#deps;
    if (this.#unsaved !== undefined) await this.#save(this.#unsaved);
    for (;;) {
      const row = await this.#rows.get(this.#key);
      const grant = this.#granted(row);
      const now = clock.now();
      if (this.#isGood(grant, now)) return this.#use(grant);
      if (grant.refreshToken === '') throw notLoggedIn();
      if (isClaimed(grant, now)) {
        await clock.sleep(LOOK_AGAIN_MS);
        continue;
      }
      const claimed = this.#change(row, { ...grant, claimedUntil: now + CLAIM_MS });
      if (await this.#rows.swap(claimed, [])) return this.#refresh(grant, claimed.to);
    }
  }

  #isGood({ accessToken, renewAt = 0 }: StoredGrant, now: number): boolean {
    return accessToken !== undefined && accessToken !== this.#discarded && now < renewAt;
  }

  #use({ accessToken = '', renewAt = 0 }: Grant): string {
    this.#token = accessToken;
    this.#renewAt = renewAt;
    return accessToken;
  }

  async #refresh(grant: StoredGrant, claimed: string): Promise<string> {
    const { clock, settings, endpoint, proxy = '' } = this.#deps;
    const form = {
      grant_type: 'refresh_token',
      client_id: settings.clientId,
      refresh_token: grant.refreshToken,
      ...(settings.clientSecret === '' ? {} : { client_secret: settings.clientSecret }),
      ...(endpoint.scope === '' ? {} : { scope: endpoint.scope }),
    };
    const issued = await requestGrant(endpoint.tokenUrl, form, clock, proxy).catch(
      async (error) => {
        await this.#rows.swap(this.#change(claimed, grant), []);
        throw error;
      },
    );
    const fresh = { ...issued, refreshToken: issued.refreshToken || grant.refreshToken };
    this.#unsaved = { fresh, used: grant.refreshToken };
    await this.#save(this.#unsaved);
    return this.#use(fresh);
  }

  /** In place of the grant that was used up, unless somebody logged in again meanwhile. */
  async #save({ fresh, used }: { readonly fresh: Grant; readonly used: string }): Promise<void> {
    for (;;) {
      const row = await this.#rows.get(this.#key);
      if (row !== undefined && this.#granted(row).refreshToken !== used) break;
      if (await this.#rows.swap(this.#change(row, fresh), [])) break;
    }
    this.#unsaved = undefined;
  }

  #granted(row: string | undefined): StoredGrant {
    const grant = read(row);
    return { ...grant, refreshToken: grant?.refreshToken || this.#deps.settings.refreshToken };
  }

  /** A token of the configuration stays there alone. */
  #change(from: string | undefined, grant: StoredGrant) {
    const isConfigured = grant.refreshToken === this.#deps.settings.refreshToken;
    const to = write(isConfigured ? { ...grant, refreshToken: '' } : grant);
    return { key: this.#key, from, to };
  }
}

/** A clock that was set back does not make a claim last. */
function isClaimed({ claimedUntil = 0 }: StoredGrant, now: number): boolean {
  return now < claimedUntil && claimedUntil <= now + CLAIM_MS;
}

function memoryRows(): GrantRows {
  const rows = new Map<string, string>();
  return {
    get: async (key) => rows.get(key),
    set: async (key, value) => void rows.set(key, value),
    async swap({ key, from, to }) {
      if (rows.get(key) !== from) return false;
      if (to === undefined) rows.delete(key);
      else rows.set(key, to);
      return true;
    },
  };
}

// Requests to the token server.

const answerSchema = z.object({
  access_token: z.string().min(1),
  expires_in: z.coerce.number().positive().optional().catch(undefined),
  refresh_token: z.string().min(1).optional().catch(undefined),
});
const refusalSchema = z.object({ error: z.string().regex(/^[a-z_]{1,60}$/) });

export type Form = Readonly<Record<string, string>>;

/** An empty refresh token: the provider issued none. @throws ChannelError */
export async function requestGrant(
  tokenUrl: string,
  form: Form,
  clock: Clock,
  proxy: string,
): Promise<Grant> {
  const { status, body } = await post(tokenUrl, form, proxy);
  const grant = status === 200 ? grantIn(body, clock.now()) : undefined;
  if (grant !== undefined) return grant;
  const error = errorIn(body);
  if (error !== undefined && status < 500 && FINAL_ERRORS.has(error)) throw tokenRefused(error);
  throw unreachable(t`status ${status}`);
}

/** Undefined: the answer grants nothing. */
export function grantIn(body: unknown, now: number): Grant | undefined {
  const answer = answerSchema.safeParse(body).data;
  if (answer === undefined) return undefined;
  const lifetimeMs = (answer.expires_in ?? USUAL_LIFETIME_SECS) * 1000;
  const margin = Math.min(RENEW_BEFORE_END_MS, lifetimeMs / 2);
  return {
    refreshToken: answer.refresh_token ?? '',
    accessToken: answer.access_token,
    renewAt: now + lifetimeMs - margin,
  };
}

/** The error code of an answer (RFC 6749 section 5.2). */
export const errorIn = (body: unknown): string | undefined =>
  refusalSchema.safeParse(body).data?.error;

/** Follows no redirect: it would carry the refresh token to another host. */
export async function post(
  url: string,
  form: Form,
  proxy: string,
): Promise<{ readonly status: number; readonly body: unknown }> {
  try {
    const response = await fetchThrough(proxy)(url, {
      method: 'POST',
      headers: { accept: 'application/json' },
      body: new URLSearchParams(form),
      redirect: 'error',
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    });
    const text = await response.text();
    const body = text.length <= MAX_ANSWER_CHARS ? parseJson(text) : undefined;
    return { status: response.status, body };
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'TimeoutError';
    const refusal = proxyErrorIn(error)?.message;
    throw unreachable(isLate ? t`no answer within 30 s` : (refusal ?? t`cannot reach it`));
  }
}

export function tokenRefused(error: string): ChannelError {
  const meaning =
    error === 'invalid_grant'
      ? t`the refresh token expired or was revoked`
      : t`the client or the scope was refused`;
  return new ChannelError(TOKEN_REFUSED, t`the token server refused: ${meaning} (${error})`, {
    remedy: NEVER,
  });
}

const notLoggedIn = () =>
  new ChannelError(TOKEN_REFUSED, t`nobody logged in to this mailbox yet`, { remedy: NEVER });

const unreachable = (problem: string) =>
  new ChannelError('mail_server', t`no access token from the token server: ${problem}`, {
    remedy: BACKOFF,
  });

// The login to a hosted tool server by OAuth 2.1 (MCP specification 2025-06-18, authorization):
// discovery (RFC 9728, RFC 8414), dynamic registration (RFC 7591), PKCE, and refresh. What was granted
// is one row of the store, bound to the address of the server. Every address that a server names is
// untrusted: it must be public and encrypted, or on the machine of the server itself.

import type {
  AuthorizationServerMetadata,
  OAuthClientInformationMixed,
} from '@modelcontextprotocol/sdk/shared/auth.js';
import { z } from 'zod';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { neutralLines } from '../../kernel/message/untrusted.ts';
import { parseJson } from '../../lib/json/json.ts';
import { type HostResolver, SafeFetchError } from '../../lib/net/checked-address.ts';
import { createGuardedFetch } from '../../lib/net/guarded-fetch.ts';
import { readRedirect } from '../../lib/net/oauth-redirect.ts';
import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { isNear, type ToolServerConfig } from './settings.ts';

/** The scope of the logins in the store; the key is the name of the server. */
export const LOGIN_SCOPE = 'tool-server-logins';

const REQUEST_TIMEOUT_MS = 20_000;
const MAX_ANSWER_BYTES = 256_000;
const MAX_WORDS_CHARS = 200;
/** A consent that takes longer begins anew. */
const PENDING_MS = 15 * 60_000;
const RENEW_BEFORE_END_MS = 60_000;
const NO_BODY = [101, 204, 205, 304];

export type LoginRows = Pick<KeyValueStore, 'get' | 'set' | 'swap' | 'delete'>;

/** What is used of an authorization server's metadata, stored as it was when the login began. */
const metadataSchema = z.object({
  issuer: z.string(),
  authorization_endpoint: z.string(),
  token_endpoint: z.string(),
  response_types_supported: z.array(z.string()),
  token_endpoint_auth_methods_supported: z.array(z.string()).optional(),
  code_challenge_methods_supported: z.array(z.string()).optional(),
});
const clientSchema = z.object({
  client_id: z.string(),
  client_secret: z.string().optional(),
  client_secret_expires_at: z.number().optional(),
  redirect_uris: z.array(z.string()).optional(),
  token_endpoint_auth_method: z.string().optional(),
});
const serverFields = {
  /** The authorization server, as the tool server names it. */
  issuer: z.string(),
  metadata: metadataSchema,
  client: clientSchema,
  resource: z.string().optional(),
};
const rowSchema = z.object({
  url: z.string(),
  granted: z
    .object({
      ...serverFields,
      accessToken: z.string(),
      refreshToken: z.string().optional(),
      /** Epoch milliseconds. */
      renewAt: z.number().optional(),
      /** Of the login that gave them. */
      state: z.string().optional(),
    })
    .optional(),
  pending: z
    .object({
      ...serverFields,
      state: z.string(),
      verifier: z.string(),
      redirectUrl: z.string(),
      startedAt: z.number(),
      /** Its code is being exchanged. */
      isEnding: z.boolean().optional(),
    })
    .optional(),
  /** The owner was told that a login is needed. */
  isReported: z.boolean().optional(),
});
type Row = z.infer<typeof rowSchema>;
type Granted = NonNullable<Row['granted']>;

/** The server wants a login that it does not have; `message` ends the sentence "the server ...". */
export class LoginNeeded extends Error {
  override readonly name = 'LoginNeeded';
  constructor() {
    super(t`needs a login`);
  }
}

/** `message` is for the owner. */
export class LoginFailed extends NanobotError {
  override readonly name = 'LoginFailed';
  constructor(problem: string, options: { readonly cause?: unknown } = {}) {
    super('tool_server_login', problem, { ...options, userText: problem });
  }
}

export type LoginDeps = {
  readonly name: string;
  readonly config: ToolServerConfig;
  readonly rows: LoginRows;
  readonly clock: Clock;
  /** The setting; default: none. */
  readonly proxy?: (() => string) | undefined;
  readonly resolver?: HostResolver | undefined;
};

/** Whether this server may be logged in to: it is hosted, and no key is configured. */
export function mayLogIn({ url, headers }: ToolServerConfig): boolean {
  return url !== '' && !Object.keys(headers).some((name) => /^authorization$/i.test(name));
}

export class ServerLogin {
  readonly #deps: LoginDeps;
  #underWay: Promise<string | undefined> | undefined;
  /** Tokens of this process, to be masked in texts of the server. */
  readonly #known = new Set<string>();

  constructor(deps: LoginDeps) {
    this.#deps = deps;
  }

  /** The access token to send; undefined: nobody logged in. */
  async token(): Promise<string | undefined> {
    const { granted } = await this.#read();
    if (granted === undefined) return undefined;
    this.#known.add(granted.accessToken);
    const { accessToken, refreshToken, renewAt = Number.POSITIVE_INFINITY } = granted;
    if (refreshToken === undefined || this.#deps.clock.now() < renewAt) return accessToken;
    return this.renew(accessToken);
  }

  /** A token in place of one that is over; undefined: a new login is needed. One request for all. */
  renew(old: string): Promise<string | undefined> {
    this.#underWay ??= this.#renewed(old).finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  mask(text: string): string {
    return [...this.#known].reduce((shown, token) => shown.replaceAll(token, '[redacted]'), text);
  }

  /** True once for each login that is needed: the owner has to be told. */
  async isNewlyNeeded(): Promise<boolean> {
    const row = await this.#read();
    if (row.isReported === true) return false;
    await this.#write({ ...row, isReported: true });
    return true;
  }

  /** Begins a login that ends at `redirectUrl`. Returns the consent page. @throws LoginFailed */
  begin(redirectUrl: string, state: string): Promise<URL> {
    return explained(() => this.#begin(redirectUrl, state));
  }

  /** Whether the address is the end of the login that was begun last. */
  async isOurs(address: string): Promise<boolean> {
    const { pending } = await this.#read();
    return pending !== undefined && readRedirect(address, pending.state).kind !== 'foreign';
  }

  /** Ends the login with the address at which the browser ended. @throws LoginFailed */
  finish(address: string): Promise<void> {
    return explained(() => this.#finish(address));
  }

  /** Whether the login with this state gave the tokens. */
  async isLoggedInBy(state: string): Promise<boolean> {
    return (await this.#read()).granted?.state === state;
  }

  /** Deletes the tokens. */
  forget(): Promise<void> {
    return this.#deps.rows.delete(this.#deps.name);
  }

  async #begin(redirectUrl: string, state: string): Promise<URL> {
    const { config, clock } = this.#deps;
    const sdk = await import('@modelcontextprotocol/sdk/client/auth.js');
    const { checkResourceAllowed, resourceUrlFromServerUrl } = await import(
      '@modelcontextprotocol/sdk/shared/auth-utils.js'
    );
    const challenge = await this.#challenge();
    const found = await sdk.discoverOAuthServerInfo(config.url, {
      ...challenge.options,
      fetchFn: this.#fetch,
    });
    const { authorizationServerUrl: issuer, resourceMetadata } = found;
    const metadata = this.#checked(found.authorizationServerMetadata, issuer);
    const requested = resourceUrlFromServerUrl(config.url);
    const resource = resourceMetadata?.resource;
    if (
      resource !== undefined &&
      !checkResourceAllowed({ requestedResource: requested, configuredResource: resource })
    ) {
      throw new LoginFailed(t`its metadata names another server as the protected resource`);
    }
    const offered = resourceMetadata?.scopes_supported?.join(' ') ?? '';
    const scope = config.oauth.scope || challenge.scope || offered;
    const scopes = scope === '' ? {} : { scope };
    const client = await this.#client(issuer, found.authorizationServerMetadata, {
      ...{ redirectUrl, scopes },
      register: sdk.registerClient,
    });
    const { authorizationUrl, codeVerifier } = await sdk.startAuthorization(issuer, {
      ...{ metadata, clientInformation: client, redirectUrl, state, ...scopes },
      ...(resource === undefined ? {} : { resource }),
    });
    const pending = {
      ...{ issuer, metadata, client, state, redirectUrl, verifier: codeVerifier },
      ...{ resource, startedAt: clock.now() },
    };
    await this.#write({ ...(await this.#read()), pending });
    return authorizationUrl;
  }

  /** What the server says to a request without a token. */
  async #challenge() {
    const { extractWWWAuthenticateParams } = await import(
      '@modelcontextprotocol/sdk/client/auth.js'
    );
    const answer = await this.#fetch(this.#deps.config.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'ping' }),
    });
    const { resourceMetadataUrl, scope = '' } =
      answer.status === 401 ? extractWWWAuthenticateParams(answer) : {};
    return { options: resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }, scope };
  }

  #checked(found: AuthorizationServerMetadata | undefined, issuer: string) {
    const metadata = metadataSchema.safeParse(found).data;
    if (metadata === undefined) {
      const remedy = t`set mcpServers.${this.#deps.name}.headers.Authorization if it needs a key`;
      throw new LoginFailed(t`it offers no login with OAuth; ${remedy}`);
    }
    // RFC 8414 section 3.3: else another server could pose as this one.
    const same = (one: string) => one.replace(/\/$/, '');
    if (same(metadata.issuer) !== same(issuer)) {
      throw new LoginFailed(t`its authorization server has the metadata of another one`);
    }
    if (!(metadata.code_challenge_methods_supported ?? []).includes('S256')) {
      throw new LoginFailed(t`its authorization server does not support PKCE (S256)`);
    }
    for (const address of [metadata.authorization_endpoint, metadata.token_endpoint]) {
      this.#assertSafe(URL.parse(address));
    }
    return metadata;
  }

  /** The configured client, the one of an earlier login, or a new registration. */
  async #client(
    issuer: string,
    metadata: AuthorizationServerMetadata | undefined,
    {
      redirectUrl,
      scopes,
      register,
    }: {
      readonly redirectUrl: string;
      readonly scopes: { readonly scope?: string };
      readonly register: typeof import('@modelcontextprotocol/sdk/client/auth.js').registerClient;
    },
  ): Promise<z.infer<typeof clientSchema>> {
    const { clientId, clientSecret } = this.#deps.config.oauth;
    if (clientId !== '') {
      return {
        client_id: clientId,
        ...(clientSecret === '' ? {} : { client_secret: clientSecret }),
      };
    }
    const { granted } = await this.#read();
    const isSame = granted?.issuer === issuer;
    if (isSame && granted.client.redirect_uris?.includes(redirectUrl) === true) {
      return granted.client;
    }
    if (metadata?.registration_endpoint === undefined) {
      const remedy = t`set mcpServers.${this.#deps.name}.oauth.clientId to a client of your own`;
      throw new LoginFailed(t`its authorization server registers no clients by itself; ${remedy}`);
    }
    const clientMetadata = {
      client_name: 'nanobot',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    };
    const options = { metadata, clientMetadata, ...scopes, fetchFn: this.#fetch };
    return clientSchema.parse(await register(issuer, options));
  }

  async #finish(address: string): Promise<void> {
    const { clock } = this.#deps;
    const { pending, ...row } = await this.#read();
    const isOpen = pending !== undefined && pending.isEnding !== true;
    if (!isOpen || clock.now() - pending.startedAt > PENDING_MS) {
      throw new LoginFailed(t`no login was begun in the last 15 minutes; request a new link`);
    }
    const found = readRedirect(address, pending.state);
    if (found.kind === 'foreign') {
      throw new LoginFailed(t`this is not the address at which the requested login ends`);
    }
    // RFC 9207: the answer names the server that gave it.
    const iss = URL.parse(address.trim(), 'http://127.0.0.1/')?.searchParams.get('iss');
    if (typeof iss === 'string' && iss !== pending.metadata.issuer) {
      throw new LoginFailed(t`the answer comes from another authorization server`);
    }
    // A code is used once, whatever becomes of it.
    await this.#write({ ...row, pending: { ...pending, isEnding: true } });
    let ended: Row = row;
    try {
      if (found.kind === 'refused')
        throw new LoginFailed(t`the access was refused (${found.error})`);
      const { exchangeAuthorization } = await import('@modelcontextprotocol/sdk/client/auth.js');
      const { issuer, metadata, client, resource, verifier, redirectUrl } = pending;
      const tokens = await exchangeAuthorization(issuer, {
        ...{ metadata, clientInformation: clientOf(client), redirectUri: redirectUrl },
        ...{ authorizationCode: found.code, codeVerifier: verifier, fetchFn: this.#fetch },
        ...(resource === undefined ? {} : { resource }),
      });
      const server = { issuer, metadata, client, resource, state: pending.state };
      ended = { url: row.url, granted: { ...server, ...this.#granted(tokens) } };
    } finally {
      // Who waits in another process sees the end of the login and its result at once.
      await this.#write(ended);
    }
  }

  async #renewed(old: string): Promise<string | undefined> {
    const { rows, name } = this.#deps;
    const stored = await rows.get(name);
    const row = this.#parsed(stored);
    const { granted } = row;
    if (granted === undefined) return undefined;
    if (granted.accessToken !== old) return granted.accessToken;
    const next = await this.#refreshed(granted);
    // A login of the owner in the meantime counts more; without one the row is unchanged.
    const to = JSON.stringify({ ...row, granted: next } satisfies Row);
    const isKept = await rows.swap({ key: name, from: stored, to }, []);
    return isKept ? next?.accessToken : (await this.#read()).granted?.accessToken;
  }

  /** Undefined: the server refuses the refresh token, or there is none. @throws LoginFailed */
  async #refreshed(granted: Granted): Promise<Granted | undefined> {
    const { issuer, metadata, client, resource, refreshToken } = granted;
    if (refreshToken === undefined) return undefined;
    const { refreshAuthorization } = await import('@modelcontextprotocol/sdk/client/auth.js');
    const errors = await import('@modelcontextprotocol/sdk/server/auth/errors.js');
    try {
      const tokens = await refreshAuthorization(issuer, {
        ...{ metadata, clientInformation: clientOf(client), refreshToken, fetchFn: this.#fetch },
        ...(resource === undefined ? {} : { resource }),
      });
      return { ...granted, ...this.#granted(tokens) };
    } catch (error) {
      const isFinal = error instanceof errors.OAuthError && !(error instanceof errors.ServerError);
      if (isFinal && !(error instanceof errors.TemporarilyUnavailableError)) return undefined;
      throw new LoginFailed(t`the authorization server does not answer`, { cause: error });
    }
  }

  #granted(tokens: {
    readonly access_token: string;
    readonly refresh_token?: string | undefined;
    readonly expires_in?: number | undefined;
  }): Pick<Granted, 'accessToken' | 'refreshToken' | 'renewAt'> {
    const { access_token: accessToken, refresh_token: refreshToken, expires_in: seconds } = tokens;
    this.#known.add(accessToken);
    const lifetimeMs = (seconds ?? Number.POSITIVE_INFINITY) * 1000;
    const renewAt =
      this.#deps.clock.now() + lifetimeMs - Math.min(RENEW_BEFORE_END_MS, lifetimeMs / 2);
    return { accessToken, refreshToken, ...(Number.isFinite(renewAt) ? { renewAt } : {}) };
  }

  /** A row of another address is another server's. */
  async #read(): Promise<Row> {
    return this.#parsed(await this.#deps.rows.get(this.#deps.name));
  }

  #parsed(stored: string | undefined): Row {
    const { url } = this.#deps.config;
    const row = stored === undefined ? undefined : rowSchema.safeParse(parseJson(stored)).data;
    return row?.url === url ? row : { url };
  }

  #write(row: Row): Promise<void> {
    return this.#deps.rows.set(this.#deps.name, JSON.stringify(row));
  }

  /** @throws LoginFailed */
  #assertSafe(url: URL | null): asserts url is URL {
    if (url !== null && (url.protocol === 'https:' || this.#mayBeNear(url))) return;
    throw new LoginFailed(t`it names an address that is not encrypted`);
  }

  /** On the machine of the server, or in the private network that the owner allows for it. */
  #mayBeNear({ protocol, hostname }: URL): boolean {
    const { url, privateNetwork } = this.#deps.config;
    const own = new URL(url).hostname;
    if (!/^https?:$/.test(protocol)) return false;
    if (hostname === own) return privateNetwork || isNear(own);
    return privateNetwork && isNear(hostname);
  }

  /** For the addresses that a server names: each is checked, redirects are not followed. */
  readonly #fetch = async (asked: string | URL, init: RequestInit = {}): Promise<Response> => {
    const url = URL.parse(String(asked));
    this.#assertSafe(url);
    const port = Number(url.port) || (url.protocol === 'http:' ? 80 : 443);
    const near = this.#mayBeNear(url) ? [`${url.hostname}:${port}`] : [];
    const { resolver, proxy } = this.#deps;
    const guarded = createGuardedFetch({
      ...{ origin: url, rules: { ports: [port], allowPrivateHosts: near } },
      ...{
        maxBytes: MAX_ANSWER_BYTES,
        proxy: proxy?.() ?? '',
        ...(resolver === undefined ? {} : { resolver }),
      },
    });
    try {
      const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
      const answer = await guarded.fetch(url, { ...init, signal });
      // A server may answer with an endless stream; its head says what is wanted.
      const isStream = (answer.headers.get('content-type') ?? '').startsWith('text/event-stream');
      const hasBody = !isStream && !NO_BODY.includes(answer.status);
      return new Response(hasBody ? await answer.arrayBuffer() : null, answer);
    } finally {
      await guarded.close();
    }
  };
}

const clientOf = (client: z.infer<typeof clientSchema>) => client as OAuthClientInformationMixed;

/** Words of a server are bounded; an address is never shown. */
async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof LoginFailed) throw error;
    if (error instanceof SafeFetchError) throw new LoginFailed(error.message, { cause: error });
    const code = error instanceof Error && 'errorCode' in error ? ` (${error.errorCode})` : '';
    const words = error instanceof Error ? neutralLines(error.message).join(' ') : '';
    const text = t`the authorization server refused${code}: ${headOf(words, MAX_WORDS_CHARS)}`;
    throw new LoginFailed(text, { cause: error });
  }
}

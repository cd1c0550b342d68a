// The consent of a mailbox's owner: in a browser, which ends at a port of this machine (RFC 8252 with
// PKCE) or at an address that the person pastes, or by a code on another device (RFC 8628).

import { z } from 'zod';
import { ChannelError, NEVER } from '../../kernel/message/errors.ts';
import { consentSecrets, listenForRedirect, readRedirect } from '../../lib/net/oauth-redirect.ts';
import { t } from '../../lib/texts.ts';
import { type Clock, orAborted } from '../../lib/time/clock.ts';
import {
  errorIn,
  type Form,
  type Grant,
  grantIn,
  post,
  requestGrant,
  TOKEN_REFUSED,
} from './access-tokens.ts';
import type { OAuth2Provider, OAuth2Settings } from './settings.ts';

const REDIRECT_PATH = '/oauth2';
/** RFC 8628 section 3.5. */
const USUAL_INTERVAL_SECS = 5;
const SLOWER_BY_SECS = 5;
const MAX_LIFETIME_SECS = 3600;
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

export type Consent = {
  readonly settings: OAuth2Settings;
  readonly provider: OAuth2Provider;
  /** The mailbox; the provider offers this login first. */
  readonly username: string;
  /** The setting; default: none. */
  readonly proxy?: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Shows the person what to open. */
  say(text: string): void;
};

/**
 * `paste` asks for the address at which the browser ended, until aborted. @throws ChannelError, the
 * signal's reason, and what `paste` throws
 */
export async function consentInBrowser(
  consent: Consent,
  paste?: (
    isOfLogin: (address: string) => boolean,
    signal: AbortSignal,
  ) => Promise<string> | undefined,
): Promise<Grant> {
  const { settings, provider, username, proxy = '', clock, signal, say } = consent;
  const { state, verifier, challenge } = consentSecrets();
  const listener = await listenForRedirect(REDIRECT_PATH, state);
  const asking = new AbortController();
  try {
    const redirectUri = `http://${provider.redirectHost}:${listener.port}${REDIRECT_PATH}`;
    const page = new URL(provider.authorizeUrl);
    const parameters = {
      ...provider.parameters,
      response_type: 'code',
      client_id: settings.clientId,
      redirect_uri: redirectUri,
      scope: provider.scope,
      state,
      code_challenge: challenge,
      code_challenge_method: 'S256',
      login_hint: username,
    };
    for (const [name, value] of Object.entries(parameters)) page.searchParams.set(name, value);
    say(t`Open this address in a browser on this machine and allow the access:\n${page.href}`);
    const isOfLogin = (address: string) => readRedirect(address, state).kind !== 'foreign';
    const pasted = paste?.(isOfLogin, asking.signal);
    pasted?.catch(() => undefined);
    const ends = [listener.redirect, ...(pasted === undefined ? [] : [pasted])];
    const found = readRedirect(await orAborted(Promise.race(ends), signal), state);
    if (found.kind !== 'code') throw refused(found.kind === 'refused' ? found.error : t`no answer`);
    const form = {
      grant_type: 'authorization_code',
      code: found.code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
      ...clientOf(settings),
    };
    return lasting(await requestGrant(provider.tokenUrl, form, clock, proxy));
  } finally {
    asking.abort();
    await listener[Symbol.asyncDispose]();
  }
}

const deviceSchema = z.object({
  device_code: z.string().min(1),
  user_code: z.string().regex(/^[\x21-\x7e]{1,64}$/),
  verification_uri: z.url({ protocol: /^https?$/ }),
  expires_in: z.coerce.number().positive().max(MAX_LIFETIME_SECS).catch(MAX_LIFETIME_SECS),
  interval: z.coerce.number().positive().max(60).default(USUAL_INTERVAL_SECS),
});

/** @throws ChannelError, the signal's reason */
export async function consentOnDevice(consent: Consent): Promise<Grant> {
  const { settings, provider, proxy = '', clock, signal, say } = consent;
  const scoped = { ...clientOf(settings), scope: provider.scope };
  const asked = await post(provider.deviceUrl, scoped, proxy);
  const device = deviceSchema.safeParse(asked.body).data;
  if (asked.status !== 200 || device === undefined) {
    throw refused(errorIn(asked.body) ?? t`status ${asked.status}`);
  }
  say(
    t`On any device, open ${device.verification_uri} and enter the code ${device.user_code}. ` +
      t`It is valid for ${Math.ceil(device.expires_in / 60)} minutes.`,
  );
  const until = clock.now() + device.expires_in * 1000;
  const form = { grant_type: DEVICE_GRANT, device_code: device.device_code, ...clientOf(settings) };
  for (let seconds = device.interval; clock.now() < until; ) {
    await clock.sleep(seconds * 1000, signal);
    const answer = await poll(provider.tokenUrl, form, proxy);
    const grant = answer.status === 200 ? grantIn(answer.body, clock.now()) : undefined;
    if (grant !== undefined) return lasting(grant);
    const error = errorIn(answer.body);
    if (error === 'authorization_pending') continue;
    if (error !== undefined && error !== 'slow_down' && answer.status < 500) throw refused(error);
    seconds += SLOWER_BY_SECS;
  }
  throw refused('expired_token');
}

/** A token server that is unreachable now is asked again, more slowly. */
const poll = (tokenUrl: string, form: Form, proxy: string) =>
  post(tokenUrl, form, proxy).catch(() => ({ status: 503, body: undefined }));

const clientOf = ({ clientId, clientSecret }: OAuth2Settings): Form => ({
  client_id: clientId,
  ...(clientSecret === '' ? {} : { client_secret: clientSecret }),
});

function lasting(grant: Grant): Grant {
  if (grant.refreshToken !== '') return grant;
  throw failed(t`the provider gave no refresh token; the scope may lack offline access`);
}

const MEANINGS: Readonly<Record<string, string>> = {
  access_denied: t`the access was not allowed`,
  expired_token: t`the code expired before the access was allowed`,
  invalid_client: t`the provider does not know the client id or its secret`,
  unauthorized_client: t`the provider does not allow this client to log in this way`,
  invalid_scope: t`the provider does not know the scope`,
};

const refused = (error: string) =>
  failed(MEANINGS[error] === undefined ? t`refused (${error})` : `${MEANINGS[error]} (${error})`);

const failed = (problem: string) =>
  new ChannelError(TOKEN_REFUSED, t`the login failed: ${problem}`, { remedy: NEVER });

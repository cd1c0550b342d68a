// A mailbox logged in to by OAuth2, against a real Dovecot and Postfix that ask a token server on
// loopback about every token.

import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { keepGrant } from '../../src/channels/email/access-tokens.ts';
import { proveMailbox } from '../../src/channels/email/servers.ts';
import type { EmailConfig } from '../../src/channels/email/settings.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { sending } from '../contract/channel.ts';
import { describeWithMail, type MailServers, startMailServers } from '../support/mail-servers.ts';
import {
  answerTo,
  emailConfig,
  firstOf,
  hastyClock,
  launchChannel,
  mailsIn,
  type RunningChannel,
  sendAsPerson,
  startChannel,
  testLookup,
} from '../support/mail-servers-host.ts';
import { AGENT } from '../support/mailbox-config.ts';
import { createMemoryHost, type MemoryHost } from '../support/memory-host.ts';
import { startTokenServer, type TokenServer } from '../support/token-server.ts';

const WAIT_MS = 45_000;
const REFRESH_TOKEN = 'first-refresh-token';

describeWithMail('a mailbox by OAuth2', () => {
  let tokens: TokenServer;
  let servers: MailServers;
  let running: RunningChannel | undefined;

  beforeAll(async () => {
    tokens = await startTokenServer(AGENT);
    servers = await startMailServers({ introspectionUrl: tokens.introspectionUrl });
  });
  afterEach(async () => {
    await running?.stop().catch(() => undefined);
    running = undefined;
    Object.assign(tokens, { refreshToken: REFRESH_TOKEN, lifetimeSecs: 3600, fault: undefined });
    tokens.rotates = false;
  });
  afterAll(async () => {
    await servers?.[Symbol.asyncDispose]();
    await tokens?.[Symbol.asyncDispose]();
  });

  const config = (refreshToken = REFRESH_TOKEN): EmailConfig =>
    emailConfig(servers, {
      password: '',
      oauth2: {
        ...{ tokenUrl: tokens.tokenUrl, authorizeUrl: '', deviceUrl: '' },
        clientId: 'the-client',
        clientSecret: 'client-secret',
        refreshToken,
        scope: 'mail',
      },
    });
  const deps = () => ({ lookup: testLookup, certificateAuthority: servers.certificate });
  const begin = async (host: MemoryHost) => {
    running = await startChannel(host, config(), deps());
    return running.channel;
  };
  const everythingSaid = (host: MemoryHost) =>
    JSON.stringify([host.logged, host.statuses, host.alerts]);

  it('reads mail and answers it without a password', async () => {
    const host = createMemoryHost(systemClock);
    const channel = await begin(host);
    await sendAsPerson(servers, { from: 'ada@person.test', subject: 'hi', text: 'Who are you?' });
    await host.until(() => host.texts().length === 1, WAIT_MS);
    await channel.send(answerTo(firstOf(host), 'An agent.'), sending());
    expect((await mailsIn(servers, 'ada@person.test')).join()).toContain('An agent.');
    expect(tokens.requests.at(-1)).toEqual({
      grant_type: 'refresh_token',
      client_id: 'the-client',
      client_secret: 'client-secret',
      refresh_token: REFRESH_TOKEN,
      scope: 'mail',
    });
    // One token serves IMAP and SMTP.
    expect(tokens.requests).toHaveLength(1);
  });

  it('takes a new token once a server refuses the old one', async () => {
    const host = createMemoryHost(hastyClock);
    const channel = await begin(host);
    const before = tokens.requests.length;
    tokens.revoke();
    await sendAsPerson(servers, { from: 'bea@person.test', subject: 'hi', text: 'Still there?' });
    await host.until(() => host.texts().length === 1, WAIT_MS);
    await channel.send(answerTo(firstOf(host), 'Yes.'), sending());
    expect(tokens.requests).toHaveLength(before + 1);
    tokens.revoke();
    await servers.restartImap();
    const isBack = () =>
      tokens.requests.length > before + 1 && host.statuses.at(-1)?.kind === 'running';
    await host.until(isBack, WAIT_MS);
    expect(tokens.requests).toHaveLength(before + 2);
  });

  it('asks anew before the token ends, and keeps a refresh token given in place of the old', async () => {
    const host = createMemoryHost(hastyClock);
    tokens.lifetimeSecs = 1e-6;
    tokens.nextRefreshToken = 'second-refresh-token';
    const channel = await begin(host);
    await sendAsPerson(servers, { from: 'cyd@person.test', subject: 'hi', text: 'Hello' });
    await host.until(() => host.texts().length === 1, WAIT_MS);
    await channel.send(answerTo(firstOf(host), 'Hello.'), sending());
    expect(tokens.requests.at(-1)).toMatchObject({ refresh_token: 'second-refresh-token' });
    await running?.stop();
    const asked = tokens.requests.length;
    tokens.revoke();
    await begin(host);
    expect(tokens.requests[asked]).toMatchObject({ refresh_token: 'second-refresh-token' });
    expect(everythingSaid(host)).not.toMatch(/refresh-token|access-token|client-secret/);
  });

  it('stops with a reason and a remedy when the refresh token is refused', async () => {
    const host = createMemoryHost(hastyClock);
    tokens.refreshToken = undefined;
    running = launchChannel(host, config(), deps());
    await expect(running.ended).rejects.toMatchObject({ code: 'mail_token_refused' });
    expect(host.statuses.at(-1)).toEqual({
      kind: 'stopped',
      reason: 'the token server refused: the refresh token expired or was revoked (invalid_grant)',
      remedy: 'make a new refresh token and save it: nanobot channels login email',
    });
    expect(host.alerts).toEqual([
      'The mailbox agent@nanobot.test is no longer read or answered: the token server refused: the ' +
        'refresh token expired or was revoked (invalid_grant). To go on, make a new refresh token ' +
        'and save it: nanobot channels login email',
    ]);
    await expect(launchChannel(host, config(), deps()).ended).rejects.toThrow('invalid_grant');
    expect(host.alerts).toHaveLength(1);
    expect(everythingSaid(host)).not.toMatch(/refresh-token|access-token|client-secret/);
  });

  it('works with a login whose refresh tokens are void after their first use', async () => {
    const host = createMemoryHost(hastyClock);
    Object.assign(tokens, { refreshToken: 'by-login', rotates: true, lifetimeSecs: 1e-6 });
    const chosen = config('');
    const before = tokens.violations.length;
    await keepGrant(host.state, chosen.oauth2, AGENT, { refreshToken: 'by-login' });
    running = await startChannel(host, chosen, deps());
    await sendAsPerson(servers, { from: 'eve@person.test', subject: 'hi', text: 'Hello' });
    await host.until(() => host.texts().length === 1, WAIT_MS);
    await running.channel.send(answerTo(firstOf(host), 'Hello.'), sending());
    expect(new Set(tokens.requests.map((form) => form['refresh_token'])).size).toBeGreaterThan(2);
    expect(tokens.violations).toHaveLength(before);
    await running.stop();
    tokens.refreshToken = undefined;
    tokens.revoke();
    running = launchChannel(host, chosen, deps());
    await expect(running.ended).rejects.toMatchObject({ code: 'mail_token_refused' });
    expect(host.statuses.at(-1)).toMatchObject({
      remedy: 'log in again: nanobot channels login email',
    });
    expect(host.alerts).toHaveLength(1);
  });

  it('stops, and keeps the answer, when the refresh token is refused while sending', async () => {
    const host = createMemoryHost(hastyClock);
    tokens.lifetimeSecs = 1e-6;
    const channel = await begin(host);
    await sendAsPerson(servers, { from: 'dan@person.test', subject: 'hi', text: 'Hello' });
    await host.until(() => host.texts().length === 1, WAIT_MS);
    tokens.refreshToken = undefined;
    const sent = channel.send(answerTo(firstOf(host), 'Hello.'), sending());
    await expect(sent).rejects.toMatchObject({
      certainty: 'not_sent',
      remedy: { kind: 'backoff' },
    });
    await expect(running?.ended).rejects.toMatchObject({ code: 'mail_token_refused' });
    expect(host.statuses.at(-1)).toMatchObject({ kind: 'stopped' });
  });

  it('goes on trying while the token server is down', async () => {
    const host = createMemoryHost(hastyClock);
    tokens.fault = { status: 503, body: 'down for maintenance' };
    running = launchChannel(host, config(), deps());
    await host.until(() => host.statuses.filter(({ kind }) => kind === 'degraded').length >= 2);
    expect(host.statuses.at(-1)).toMatchObject({
      reason: 'no access token from the token server: status 503',
    });
    tokens.fault = undefined;
    await host.until(() => host.statuses.at(-1)?.kind === 'running', WAIT_MS);
  });

  it('proves the mailbox both ways, and says what is wrong with a token', async () => {
    const { certificateAuthority } = deps();
    const prove = () =>
      proveMailbox(config(), AbortSignal.timeout(WAIT_MS), { certificateAuthority });
    expect(await prove()).toEqual({ kind: 'proven' });
    tokens.refreshToken = undefined;
    expect(await prove()).toMatchObject({
      kind: 'failed',
      step: 'imap',
      remedy: expect.stringContaining('Log in again (nanobot channels login email)'),
    });
  });
});

// `nanobot onboard` with a real mailbox: both directions are proved before anything is saved.

import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runNanobot, type TemporaryHome, temporaryHome } from '../cli/run-nanobot.ts';
import { describeWithMail, type MailServers, startMailServers } from '../support/mail-servers.ts';
import { AGENT } from '../support/mailbox-config.ts';
import { CLIENT, startTokenServer, type TokenServer } from '../support/token-server.ts';

describeWithMail('onboarding a mailbox', () => {
  let servers: MailServers;
  let tokens: TokenServer;
  let home: TemporaryHome;

  beforeAll(async () => {
    tokens = await startTokenServer(AGENT);
    servers = await startMailServers({ introspectionUrl: tokens.introspectionUrl });
    home = await temporaryHome();
  });
  afterAll(async () => {
    await home?.[Symbol.asyncDispose]();
    await servers?.[Symbol.asyncDispose]();
    await tokens?.[Symbol.asyncDispose]();
  });

  const onboard = (env: Readonly<Record<string, string>>, ...flags: readonly string[]) =>
    runNanobot(
      [
        ...['onboard', '--yes', '--no-telegram', ...flags],
        ...['--email', AGENT, '--email-allow', 'ada@person.test'],
        ...['--imap-host', '127.0.0.1', '--imap-port', String(servers.imapPort)],
        ...['--smtp-host', '127.0.0.1', '--smtp-port', String(servers.smtpPort)],
        ...['--imap-security', 'none', '--smtp-security', 'none'],
      ],
      { home: home.path, env },
    );
  const onDisk = async () => JSON.parse(await readFile(join(home.path, 'config.json'), 'utf8'));

  it('refuses a wrong password with its step and saves nothing', async () => {
    const { code, stderr } = await onboard({ EMAIL_PASSWORD: 'not-the-password' });
    expect(code).toBe(1);
    expect(stderr).toContain('the mailbox test failed at imap');
    expect(stderr).not.toContain('not-the-password');
    expect(await onDisk()).not.toHaveProperty('channels');
  });

  it('saves a mailbox that sent a mail to itself and found it', async () => {
    const { code, stdout, stderr } = await onboard({ EMAIL_PASSWORD: servers.password });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toContain('Sending and receiving work.');
    expect((await onDisk()).channels.email).toMatchObject({
      enabled: true,
      from: AGENT,
      allowFrom: ['ada@person.test'],
    });
    expect(JSON.stringify(await onDisk())).not.toContain(servers.password);
  });

  it('adds a second mailbox by a name of its own, beside the first', async () => {
    const env = { EMAIL_PASSWORD: servers.password, EMAIL_WORK_PASSWORD: servers.password };
    const login = ['channels', 'login', 'email', '--email', 'work@nanobot.test', '--account'];
    const misnamed = await runNanobot([...login, 'Work'], { home: home.path, env });
    expect(misnamed.stderr).toContain('lower-case letters');
    const { code, stderr } = await runNanobot([...login, 'work'], { home: home.path, env });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const { email } = (await onDisk()).channels;
    expect(email).toMatchObject({
      from: AGENT,
      accounts: {
        work: {
          ...{ from: 'work@nanobot.test', username: 'work@nanobot.test', allowFrom: [] },
          ...{ imapPort: servers.imapPort, password: `\${EMAIL_WORK_PASSWORD}` },
        },
      },
    });
  });

  describe('logging in with OAuth2', () => {
    const env = () => ({
      EMAIL_WORK_PASSWORD: servers.password,
      EMAIL_CLIENT_SECRET: CLIENT.clientSecret,
    });
    const login = (...flags: readonly string[]) => [
      ...['channels', 'login', 'email', '--email-client-id', CLIENT.clientId, ...flags],
      ...['--email-token-url', tokens.tokenUrl, '--email-scope', 'mail'],
    ];
    const expectNoSecrets = async (...texts: readonly string[]) => {
      const all = [...texts, JSON.stringify(await onDisk())].join();
      expect(all).not.toMatch(/access-token-|refresh-token-\d|client-secret/);
      expect((await stat(join(home.path, 'state.db'))).mode & 0o077).toBe(0);
    };

    it('opens the consent page in a browser and keeps the tokens out of the configuration', async () => {
      tokens.rotates = true;
      let opened: Promise<Response> | undefined;
      const args = login('--email-authorize-url', tokens.authorizeUrl);
      const { code, stdout, stderr } = await runNanobot(args, {
        home: home.path,
        env: { ...env(), EMAIL_PASSWORD: servers.password, DISPLAY: ':0' },
        onOutput(printed) {
          const [link] = /http\S+authorize\?\S+(?=\n)/.exec(printed) ?? [];
          if (link !== undefined) opened ??= fetch(link);
        },
      });
      expect({ code, stderr }).toMatchObject({ code: 0 });
      expect(await (await opened)?.text()).toContain('The login is complete');
      expect(stdout).toContain('Sending and receiving work.');
      const { oauth2, password } = (await onDisk()).channels.email;
      expect(password).toBe('');
      expect(oauth2).toMatchObject({ clientSecret: `\${EMAIL_CLIENT_SECRET}` });
      await expectNoSecrets(stdout, stderr);
      expect(tokens.violations).toEqual([]);
    });

    it('shows a code for another device where there is no browser', async () => {
      Object.assign(tokens, { interval: 0.1, isDeviceAllowed: true });
      const run = { home: home.path, env: env() };
      const { code, stdout, stderr } = await runNanobot(
        login('--email-device-url', tokens.deviceUrl),
        run,
      );
      expect({ code, stderr }).toMatchObject({ code: 0 });
      expect(stdout).toContain('enter the code WDJB-MJHT');
      await expectNoSecrets(stdout, stderr);
      const doctor = await runNanobot(['doctor'], run);
      expect(doctor.stdout).toContain('login accepted by');
      expect(tokens.violations).toEqual([]);
    });

    it('says what to do once the consent was withdrawn', async () => {
      tokens.refreshToken = undefined;
      tokens.revoke();
      const doctor = await runNanobot(['doctor'], { home: home.path, env: env() });
      expect(doctor.stdout).toContain('(invalid_grant)');
      expect(doctor.stdout).toContain('nanobot channels login email');
      await expectNoSecrets(doctor.stdout, doctor.stderr);
    });
  });

  it('changes to OAuth2: the password goes, the refresh token stays in the environment', async () => {
    const env = {
      EMAIL_PASSWORD: servers.password,
      EMAIL_WORK_PASSWORD: servers.password,
      EMAIL_REFRESH_TOKEN: 'first-refresh-token',
      EMAIL_CLIENT_SECRET: CLIENT.clientSecret,
    };
    const oauth2 = ['--email-client-id', 'the-client', '--email-token-url', tokens.tokenUrl];
    Object.assign(tokens, { rotates: false, refreshToken: undefined });
    const refused = await onboard(env, ...oauth2);
    expect(refused.stderr).toContain('(invalid_grant)');
    expect(refused.stdout + refused.stderr).not.toContain('first-refresh-token');
    tokens.refreshToken = 'first-refresh-token';
    const { code, stderr } = await onboard(env, ...oauth2);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect((await onDisk()).channels.email).toMatchObject({
      password: '',
      oauth2: {
        clientId: 'the-client',
        tokenUrl: tokens.tokenUrl,
        refreshToken: `\${EMAIL_REFRESH_TOKEN}`,
      },
    });
    const doctor = await runNanobot(['doctor'], { home: home.path, env });
    expect(doctor.stdout).toContain('login accepted by');
  });
});

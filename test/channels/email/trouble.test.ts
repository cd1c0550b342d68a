// IMAP servers that lie or fall silent: nothing is skipped in silence, no password goes out unprotected.

import { afterEach, expect, it } from 'vitest';
import type { EmailDeps } from '../../../src/channels/email/email.ts';
import type { EmailConfig } from '../../../src/channels/email/settings.ts';
import { configSchema } from '../../../src/kernel/config/config.ts';
import { systemClock } from '../../../src/lib/time/clock.ts';
import { expiredCertificate } from '../../support/expired-certificate.ts';
import {
  createLeapingClock,
  hastyClock,
  launchChannel,
  testLookup,
} from '../../support/mail-servers-host.ts';
import {
  type ScriptedImap,
  type ScriptedImapOptions,
  startScriptedImap,
} from '../../support/mail-servers-scripted.ts';
import { createMemoryHost, type MemoryHost } from '../../support/memory-host.ts';
import { startTokenServer } from '../../support/token-server.ts';

const MAIL = [
  'From: anna@person.test',
  'To: agent@nanobot.test',
  'Subject: odd server',
  'Date: Thu, 15 Jan 2026 12:00:00 +0000',
  'Message-ID: <scripted@person.test>',
  '',
  'Can you read me?',
  '',
].join('\r\n');

let server: ScriptedImap | undefined;
/** Changes while the server runs. */
let options: { -readonly [K in keyof ScriptedImapOptions]: ScriptedImapOptions[K] };
let host: MemoryHost;
let stop: (() => Promise<void>) | undefined;

afterEach(async () => {
  await stop?.();
  stop = undefined;
  await server?.[Symbol.asyncDispose]();
});

async function begin(
  wanted: Partial<ScriptedImapOptions>,
  changes: Partial<EmailConfig> = {},
  clock = hastyClock,
  deps: EmailDeps = {},
): Promise<ScriptedImap> {
  options = { mail: MAIL, body: 'whole', ...wanted };
  server = await startScriptedImap(options);
  host = createMemoryHost(clock);
  host.storedCursor = '7:0:0';
  const config: EmailConfig = {
    ...configSchema.parse({}).channels.email,
    imapHost: '127.0.0.1',
    imapPort: server.port,
    imapSecurity: 'none',
    smtpHost: '127.0.0.1',
    smtpSecurity: 'none',
    username: 'agent@nanobot.test',
    password: 'secret',
    ...changes,
  };
  stop = launchChannel(host, config, { lookup: testLookup, ...deps }).stop;
  return server;
}

it('reads a mail and peeks, so that it stays unread', async () => {
  const { commands } = await begin({});
  await host.until(() => host.texts().length === 1);
  expect(host.texts()[0]).toContain('Can you read me?');
  expect(host.storedCursor).toBe('7:1:0');
  expect(commands.filter((command) => /BODY\[|STORE|SELECT/.test(command))).toEqual([]);
});

it('asks in another way where the server says OK without the mail', async () => {
  await begin({ body: 'in two pieces' });
  await host.until(() => host.texts().length === 1);
  expect(host.texts()[0]).toContain('Can you read me?');
});

it('puts a mail off where the server says OK without it, and gives it up after six hours', async () => {
  const clock = createLeapingClock();
  await begin({ body: 'missing' }, {}, clock);
  const tries = async () => JSON.parse((await host.state.list('later/'))[0]?.value ?? '{}').tries;
  for (let n = 1; n < 16; n += 1) {
    await expect.poll(tries, { timeout: 30_000 }).toBe(n);
    clock.leap(3_600_000);
  }
  await host.until(() => host.gates().length === 1);
  expect(host.gates()).toEqual(['could not be read from the mail server']);
  expect(host.storedCursor).toBe('7:1:0');
  expect(host.alerts).toEqual([expect.stringContaining('without the mail')]);
  await expect.poll(() => host.state.list('later/')).toEqual([]);
});

it('reads a mail that the server hands out late', async () => {
  const clock = createLeapingClock();
  await begin({ body: 'missing' }, {}, clock);
  await host.until(() => host.storedCursor === '7:1:0');
  expect(host.entries).toEqual([]);
  options.body = 'whole';
  clock.leap(60_000);
  await host.until(() => host.texts().length === 1);
  expect(host.alerts).toEqual([]);
});

it('gives up a command that is not answered, instead of waiting for ever', async () => {
  const impatient = {
    ...systemClock,
    timer: (ms: number, fn: () => void) => systemClock.timer(Math.min(ms, 1_000), fn),
  };
  await begin({ body: 'never' }, {}, impatient);
  await host.until(() => host.statuses.some(({ kind }) => kind === 'degraded'));
  expect(host.statuses.at(-1)).toMatchObject({ reason: expect.stringContaining('no answer') });
  expect(host.entries).toEqual([]);
});

it('sends no password where STARTTLS was taken out of the greeting', async () => {
  const { commands } = await begin({}, { imapSecurity: 'starttls' });
  await host.until(() => host.statuses.some(({ kind }) => kind === 'degraded'));
  expect(host.statuses.at(-1)).toMatchObject({ reason: expect.stringContaining('STARTTLS') });
  expect(commands.filter((command) => /LOGIN|AUTHENTICATE/.test(command))).toEqual([]);
});

it('sends no password to a server whose certificate has expired, and says so', async () => {
  const tls = expiredCertificate();
  const trust = { certificateAuthority: tls.cert };
  const { commands } = await begin({ tls }, { imapSecurity: 'tls' }, hastyClock, trust);
  await host.until(() => host.statuses.some(({ kind }) => kind === 'degraded'));
  expect(host.statuses.at(-1)).toMatchObject({
    reason: expect.stringContaining('certificate has expired'),
    retryAt: expect.any(Number),
  });
  expect(commands).toEqual([]);
});

it('sends no token to a server that takes none, least of all as a password', async () => {
  await using tokens = await startTokenServer('agent@nanobot.test');
  const oauth2 = {
    ...{ tokenUrl: tokens.tokenUrl, authorizeUrl: '', deviceUrl: '' },
    clientId: 'the-client',
    clientSecret: '',
    refreshToken: 'first-refresh-token',
    scope: '',
  };
  const { commands } = await begin({ capabilities: 'IMAP4rev1 AUTH=PLAIN' }, { oauth2 });
  await host.until(() => host.statuses.some(({ kind }) => kind === 'stopped'));
  stop = undefined;
  expect(host.statuses.at(-2)).toMatchObject({
    reason: expect.stringContaining('does not support login with OAuth2'),
  });
  expect(host.statuses.at(-1)).toMatchObject({ remedy: expect.stringContaining('scope') });
  expect(commands.filter((command) => /LOGIN|AUTHENTICATE/.test(command))).toEqual([]);
});

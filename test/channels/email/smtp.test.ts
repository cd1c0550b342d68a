// SMTP faults: what is tried again, what is given up, and when nobody knows.

import { createServer } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { afterEach, expect, it } from 'vitest';
import { AccessTokens } from '../../../src/channels/email/access-tokens.ts';
import type { MailAccount } from '../../../src/channels/email/connection-settings.ts';
import { sendBySmtp } from '../../../src/channels/email/smtp.ts';
import { systemClock } from '../../../src/lib/time/clock.ts';
import { portOf } from '../../support/listening.ts';
import { startTokenServer } from '../../support/token-server.ts';

const RAW = Buffer.from('Subject: x\r\n\r\nhello\r\n.leading dot\r\n');
const ANNA = 'anna@person.test';

let closing: (() => Promise<void>) | undefined;
afterEach(async () => {
  await closing?.();
  closing = undefined;
});

const passwordOf = (password: string) => ({ kind: 'password', password }) as const;

const accountAt = (port: number, changes: Partial<MailAccount> = {}): MailAccount => {
  const server = { host: '127.0.0.1', port, security: 'none' } as const;
  return {
    imap: server,
    smtp: server,
    username: 'agent',
    credential: passwordOf(''),
    from: 'agent@nanobot.test',
    own: ['agent@nanobot.test'],
    ...changes,
  };
};

async function listen(options: SMTPServerOptions): Promise<number> {
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    authOptional: true,
    logger: false,
    ...options,
  });
  server.on('error', () => undefined);
  closing = () => new Promise((resolve) => server.close(() => resolve()));
  return portOf(server.server);
}

/** A server that follows the dialogue and closes the connection at one line. */
async function listenUntil(cut: 'DATA' | 'dot', replyTo = ''): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.write('220 hello\r\n');
    let isData = false;
    socket.on('data', (chunk) => {
      const text = chunk.toString();
      if (isData) {
        if (text.includes('\r\n.\r\n')) socket.end(replyTo);
      } else if (text.startsWith('DATA')) {
        if (cut === 'DATA') return socket.destroy();
        isData = true;
        socket.write('354 go on\r\n');
      } else socket.write('250 ok\r\n');
    });
  });
  const port = await portOf(server);
  closing = () => new Promise((resolve) => server.close(() => resolve()));
  return port;
}

const send = (account: MailAccount, attempt = 1) =>
  sendBySmtp(account, ANNA, RAW, AbortSignal.timeout(45_000), attempt).then(
    () => 'sent',
    (error) => error,
  );

it('hands the mail over with an explicit envelope, every byte of it', async () => {
  const seen: { envelope: unknown; text: string }[] = [];
  const port = await listen({
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk) => chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        const from = mailFrom === false ? '' : mailFrom.address;
        seen.push({
          envelope: [from, ...rcptTo.map((to) => to.address)],
          text: Buffer.concat(chunks).toString(),
        });
        done();
      });
    },
  });
  expect(await send(accountAt(port))).toBe('sent');
  expect(seen).toEqual([{ envelope: ['agent@nanobot.test', ANNA], text: RAW.toString() }]);
});

it('is patient with a greylisting server, which takes the mail at the fourth try', async () => {
  let tries = 0;
  const port = await listen({
    onRcptTo(_, __, done) {
      tries += 1;
      done(tries <= 3 ? Object.assign(new Error('greylisted'), { responseCode: 451 }) : null);
    },
  });
  const pauses = new Map([
    [1, 60_000],
    [3, 240_000],
    [50, 1_800_000],
  ]);
  for (const [attempt, delayMs] of pauses) {
    const error = await send(accountAt(port), attempt);
    expect(error).toMatchObject({ certainty: 'not_sent', remedy: { kind: 'after', delayMs } });
  }
  expect(await send(accountAt(port))).toBe('sent');
});

it.each([550, 552, 554])('gives up at %i', async (responseCode) => {
  const port = await listen({
    onRcptTo: (_, __, done) => done(Object.assign(new Error('no'), { responseCode })),
  });
  expect(await send(accountAt(port))).toMatchObject({
    certainty: 'not_sent',
    remedy: { kind: 'never' },
  });
});

it('takes a refusal behind the final dot for a refusal', async () => {
  const port = await listen({
    onData(stream, _, done) {
      stream
        .resume()
        .on('end', () => done(Object.assign(new Error('spam'), { responseCode: 554 })));
    },
  });
  expect(await send(accountAt(port))).toMatchObject({
    certainty: 'not_sent',
    remedy: { kind: 'never' },
  });
});

it('does not know whether the mail arrived when the connection is lost behind the final dot', async () => {
  const port = await listenUntil('dot');
  expect(await send(accountAt(port))).toMatchObject({ certainty: 'unknown' });
});

it('knows that nothing arrived when the connection is lost before the text', async () => {
  const port = await listenUntil('DATA');
  expect(await send(accountAt(port))).toMatchObject({
    certainty: 'not_sent',
    remedy: { kind: 'backoff' },
  });
});

it('tries later when nobody answers', async () => {
  const port = await listen({});
  await closing?.();
  closing = undefined;
  expect(await send(accountAt(port))).toMatchObject({
    certainty: 'not_sent',
    remedy: { kind: 'backoff' },
  });
});

it('sends no password where STARTTLS was taken out of the greeting', async () => {
  let logins = 0;
  const port = await listen({
    onAuth(_, __, done) {
      logins += 1;
      done(null, { user: 'agent' });
    },
    allowInsecureAuth: true,
  });
  const smtp = { host: '127.0.0.1', port, security: 'starttls' } as const;
  const error = await send(accountAt(port, { smtp, credential: passwordOf('secret') }));
  expect(error).toMatchObject({ certainty: 'not_sent' });
  expect(logins).toBe(0);
});

it('reports a refused password as such', async () => {
  const port = await listen({
    onAuth: (_, __, done) => done(new Error('bad password')),
    allowInsecureAuth: true,
  });
  const error = await send(accountAt(port, { credential: passwordOf('wrong') }));
  expect(error).toMatchObject({ code: 'mail_auth_refused', certainty: 'not_sent' });
});

it('sends no access token to a server that takes none', async () => {
  const seen: unknown[] = [];
  const port = await listen({
    authMethods: ['PLAIN', 'LOGIN'],
    onAuth(auth, _, done) {
      seen.push(auth);
      done(null, { user: 'agent' });
    },
  });
  await using server = await startTokenServer('agent');
  const { tokenUrl } = server;
  const settings = {
    ...{ tokenUrl, authorizeUrl: '', deviceUrl: '' },
    clientId: 'the-client',
    clientSecret: '',
    refreshToken: 'first-refresh-token',
    scope: '',
  };
  const endpoint = { tokenUrl, scope: '' };
  const tokens = new AccessTokens({ settings, username: 'agent', endpoint, clock: systemClock });
  const error = await send(accountAt(port, { credential: { kind: 'oauth2', tokens } }));
  expect(error).toMatchObject({ code: 'mail_auth_refused', certainty: 'not_sent' });
  expect(seen).toEqual([]);
});

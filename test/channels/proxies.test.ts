// Each channel behind a real proxy program: its server has a name that only the proxy knows, or the
// proxy notes every connection that the server counts.

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { afterAll, expect, it } from 'vitest';
import type { MailAccount } from '../../src/channels/email/connection-settings.ts';
import { withConnection } from '../../src/channels/email/imap-connection.ts';
import { sendBySmtp } from '../../src/channels/email/smtp.ts';
import { quietConsole } from '../../src/channels/whatsapp/transport.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { sending } from '../contract/channel.ts';
import { fileOf } from '../contract/channel-files.ts';
import { PNG } from '../contract/media.ts';
import { startScriptedImap } from '../support/mail-servers-scripted.ts';
import { type ProxyProgram, startHttpProxy, startSocksProxy } from '../support/proxy-programs.ts';
import { createSelfSigned } from '../support/whatsapp-server/self-signed.ts';
import { startWhatsAppServer } from '../support/whatsapp-server/server.ts';
import { trustWhatsAppServer } from '../support/whatsapp-server/trust.ts';
import { answer, startRig, textsSeen } from './lark/rig.ts';
import { startLiveRig } from './whatsapp/live-rig.ts';
import { fileMessage, filesSeenBy } from './whatsapp/seen-files.ts';

const LOGIN = { username: 'ada', password: 'correct-horse' };
const http = await startHttpProxy(LOGIN);
const socks = await startSocksProxy(LOGIN);
const quiet = quietConsole();
afterAll(async () => {
  quiet[Symbol.dispose]();
  await http[Symbol.asyncDispose]();
  await socks[Symbol.asyncDispose]();
});

/** As the loaded configuration completes it. */
const settingOf = ({ url }: ProxyProgram, channel: string) => `${url} channels.${channel}.proxy `;
const portsOf = ({ targets }: ProxyProgram) => targets.map((target) => target.split(':').at(-1));
const never = new AbortController().signal;

it('WhatsApp: the connection, and files both ways', async () => {
  await using server = await startWhatsAppServer();
  using _ = trustWhatsAppServer(server.rootKey, server.mediaCertificate);
  const before = socks.targets.length;
  await using rig = await startLiveRig(server, {
    allowFrom: ['*'],
    proxy: settingOf(socks, 'whatsapp'),
  });
  const anna = await server.contact(rig.phone, { name: 'Anna' });
  await anna.writes('', { message: await fileMessage(server, { image: PNG, jpegThumbnail: '' }) });
  const message = await rig.host.until(({ entries }) => entries.at(-1)?.message);
  const connections = socks.targets.length;
  expect(connections).toBeGreaterThan(before);
  const { content } = message.attachments?.[0] ?? {};
  if (content?.kind !== 'remote') throw new Error('nothing to fetch');
  const pieces = rig.channel.attachments?.fetch(content.ref, never);
  expect(Buffer.concat(await Array.fromAsync(pieces ?? [])).equals(PNG)).toBe(true);
  const fetched = socks.targets.length;
  expect(fetched).toBe(connections + 1);
  const attachments = [await fileOf(rig.host, PNG, { kind: 'image' })];
  await rig.channel.send(answer(message.chat, '', { attachments }), sending());
  await anna.sees(({ message: seen }) => seen.imageMessage != null, 45_000);
  expect(await filesSeenBy(anna)).toHaveLength(1);
  expect(socks.targets.length).toBe(fetched + 1);
  expect(new Set(portsOf(socks).slice(before))).toContain(new URL(server.url).port);
});

it('Lark: the calls and the long connection', async () => {
  const before = http.targets.length;
  await using rig = await startRig({ proxy: settingOf(http, 'lark') });
  rig.start();
  await rig.connected();
  const anna = rig.lark.person('Anna');
  rig.lark.say(anna, 'hello');
  const message = await rig.host.until(({ entries }) => entries[0]?.message);
  await rig.channel.send(answer(message.chat, 'An answer.'), sending());
  const { port } = new URL(rig.lark.url);
  // The endpoint, the long connection, and the calls over one that is kept.
  expect(new Set(portsOf(http).slice(before))).toEqual(new Set([port]));
  expect(http.targets.length - before).toBeGreaterThanOrEqual(3);
  expect(textsSeen(rig.lark, rig.lark.direct(anna))).toContain('An answer.');
});

it('Lark: a proxy that refuses the login is named in its status', async () => {
  const wrong = settingOf(http, 'lark').replace(LOGIN.password, 'wrong-horse');
  await using rig = await startRig({ proxy: wrong });
  rig.start();
  const status = await rig.host.until(({ statuses }) =>
    statuses.find((one) => 'reason' in one && one.reason.includes('proxy')),
  );
  expect(JSON.stringify(status)).toContain(
    '(channels.lark.proxy) refuses the user name or password',
  );
  expect(JSON.stringify(rig.host.statuses)).not.toMatch(/horse|ada:/);
});

const { key, cert } = createSelfSigned('imap.test');

function accountAt(port: number, host: string, proxy: ProxyProgram, security: 'tls' | 'none') {
  const server = { host, port, security };
  const account: MailAccount = {
    ...{ imap: server, smtp: server, username: 'agent', from: 'agent@nanobot.test' },
    credential: { kind: 'password', password: security === 'tls' ? 'secret' : '' },
    own: ['agent@nanobot.test'],
    proxy: settingOf(proxy, 'email'),
    certificateAuthority: cert,
  };
  return account;
}

it.each([
  ['http', http],
  ['socks5h', socks],
])(
  'mail by IMAP over %s, encrypted, with the certificate of the server’s name',
  async (_kind, proxy) => {
    const before = proxy.targets.length;
    await using server = await startScriptedImap({ mail: 'x', body: 'whole', tls: { key, cert } });
    const read = (host: string) =>
      withConnection(
        {
          account: accountAt(server.port, host, proxy, 'tls'),
          folder: 'INBOX',
          clock: systemClock,
        },
        never,
        (connection) => connection.open('INBOX'),
      );
    expect(await read('imap.test')).toMatchObject({ uidValidity: '7' });
    await expect(read('other.test')).rejects.toThrow(/altnames|other\.test/);
    expect(proxy.targets.slice(before)).toEqual([
      `imap.test:${server.port}`,
      `other.test:${server.port}`,
    ]);
  },
);

it.each([
  ['http', http, true],
  ['socks5h', socks, false],
])('mail by SMTP over %s', async (_kind, proxy, isTls) => {
  const mails: string[] = [];
  const certificate = createSelfSigned('smtp.test');
  const server = new SMTPServer({
    ...{ secure: isTls, ...certificate, authOptional: true, logger: false },
    ...(isTls ? {} : { disabledCommands: ['STARTTLS'] }),
    onAuth: (_auth, _session, done) => done(null, { user: 'agent' }),
    onData(stream, _session, done) {
      stream.on('data', (piece: Buffer) => mails.push(String(piece))).on('end', () => done());
    },
  });
  server.on('error', () => undefined);
  const net = server.listen(0, '127.0.0.1');
  await once(net, 'listening');
  const { port } = net.address() as AddressInfo;
  const host = isTls ? 'smtp.test' : '127.0.0.1';
  const account = {
    ...accountAt(port, host, proxy, isTls ? 'tls' : 'none'),
    certificateAuthority: certificate.cert,
  };
  const before = proxy.targets.length;
  await sendBySmtp(account, 'anna@person.test', Buffer.from('Subject: x\r\n\r\nhello\r\n'), never);
  expect(mails.join('')).toContain('hello');
  expect(proxy.targets.slice(before)).toEqual([`${host}:${port}`]);
  await new Promise<void>((closed) => server.close(() => closed()));
});

it('mail: a refused login is named for both servers', async () => {
  const wrong = { ...http, url: http.url.replace(LOGIN.password, 'wrong-horse') };
  const account = accountAt(993, 'imap.test', wrong, 'tls');
  const mailbox = { account, folder: 'INBOX', clock: systemClock };
  const failures = await Promise.all([
    withConnection(mailbox, never, async () => undefined).catch((error: Error) => error.message),
    sendBySmtp(account, 'anna@person.test', Buffer.from('x'), never).catch(
      (error: Error) => error.message,
    ),
  ]);
  for (const failure of failures) {
    expect(failure).toContain('(channels.email.proxy) refuses the user name or password');
    expect(failure).not.toMatch(/horse|ada:/);
  }
});

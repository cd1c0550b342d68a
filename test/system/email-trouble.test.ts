// What goes wrong with mail, against a real Dovecot and Postfix: machines, forgers, bombs, renumbered
// mailboxes, refused passwords.

import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { proveMailbox } from '../../src/channels/email/servers.ts';
import type { EmailConfig } from '../../src/channels/email/settings.ts';
import { DeliveryError } from '../../src/kernel/message/errors.ts';
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
  type PersonMail,
  queued,
  type RunningChannel,
  sendAsPerson,
  startChannel,
  testLookup,
} from '../support/mail-servers-host.ts';
import { AGENT } from '../support/mailbox-config.ts';
import { createMemoryHost, type MemoryHost } from '../support/memory-host.ts';

const WAIT_MS = 45_000;

let people = 0;
const somebody = () => `bob${people++}@person.test`;

describeWithMail('mail trouble against Dovecot and Postfix', () => {
  let servers: MailServers;
  let host: MemoryHost;
  let running: RunningChannel | undefined;

  const deps = () => ({ lookup: testLookup, certificateAuthority: servers.certificate });
  const start = async (changes: Partial<EmailConfig> = {}) => {
    running = await startChannel(host, emailConfig(servers, changes), deps());
    return running;
  };
  const stop = async () => {
    await running?.stop();
    running = undefined;
  };
  const count = (wanted: number) => host.until(() => host.entries.length >= wanted, WAIT_MS);
  const fresh = () => {
    host = createMemoryHost(systemClock);
  };

  beforeAll(async () => {
    servers = await startMailServers();
  });
  afterAll(async () => {
    await servers?.[Symbol.asyncDispose]();
  });
  afterEach(stop);

  it('records machine mail and hands none of it over', async () => {
    fresh();
    await start();
    const machine: readonly PersonMail[] = [
      { from: somebody(), subject: 'ooo', headers: { 'Auto-Submitted': 'auto-replied' } },
      { from: somebody(), subject: 'news', headers: { 'List-Id': '<news.person.test>' } },
      { from: 'noreply@person.test', subject: 'receipt' },
      { from: AGENT, subject: 'from ourselves', isSigned: false },
      { from: somebody(), subject: 'bulk', headers: { Precedence: 'bulk' } },
      { from: 'MAILER-DAEMON@person.test', subject: 'Undelivered', envelopeFrom: '' },
      { from: somebody(), subject: 'crm', headers: { 'X-Auto-Response-Suppress': 'All' } },
    ];
    for (const mail of machine) await sendAsPerson(servers, { text: 'hello', ...mail });
    await count(machine.length);
    expect(host.texts()).toEqual([]);
    expect([...host.gates()].sort()).toEqual([
      'auto-submitted',
      'empty return path',
      'held: auto-response suppressed',
      'held: bulk precedence',
      'machine sender',
      'mailing list',
      'our own mail',
    ]);
    await host.until(() => host.alerts.length === 2);
  });

  it('tells the owner once a day of a proven person’s mail that it does not answer', async () => {
    fresh();
    const bob = somebody();
    await start({ allowFrom: [bob] });
    const list = { from: bob, headers: { 'List-Id': '<team.person.test>' } };
    for (const subject of ['one', 'two']) await sendAsPerson(servers, { ...list, subject });
    const forged = { ...list, from: somebody(), isSigned: false, subject: 'forged' };
    await sendAsPerson(servers, forged);
    await count(3);
    expect([...host.gates()].sort()).toEqual([
      'held: mailing list',
      'held: mailing list',
      'mailing list',
    ]);
    await host.until(() => host.alerts.length === 1);
    // Two mails sent one after the other may arrive in either order.
    const told = (subject: string) =>
      `A mail from \`${bob}\` (\`${subject}\`) was not answered. Reason: mailing list. It stays in the mailbox.`;
    expect([told('one'), told('two')]).toContain(host.alerts[0]);
  });

  it('tells the owner of the mail of somebody whom the owner let in', async () => {
    host = Object.assign(createMemoryHost(systemClock), { isTrusted: async () => true });
    await start({ allowFrom: [] });
    const bob = somebody();
    const headers = { 'Auto-Submitted': 'auto-replied' };
    await sendAsPerson(servers, { from: bob, subject: 'away', text: 'I am away', headers });
    await host.until(() => host.alerts.length === 1, WAIT_MS);
    expect(host.gates()).toEqual(['held: auto-submitted']);
  });

  it('says where a named person’s signature was not enough, because of the date', async () => {
    fresh();
    const bob = somebody();
    await start({ allowFrom: [bob] });
    const headers = { Date: 'Thu, 15 Jan 2015 12:00:00 +0000' };
    await sendAsPerson(servers, { from: bob, subject: 'old', text: 'old clock', headers });
    await count(1);
    expect(firstOf(host).sender).toMatchObject({ verified: 'unverified' });
    await host.until(() => host.alerts.length === 1);
    expect(host.alerts[0]).toContain('(date too far off)');
  });

  it('does not answer its own answer when it comes back', async () => {
    fresh();
    const { channel } = await start();
    const bob = somebody();
    await sendAsPerson(servers, { from: bob, subject: 'loop', text: 'hi' });
    await count(1);
    await channel.send(answerTo(firstOf(host), 'Hello.'), sending());
    const [raw = ''] = await mailsIn(servers, bob);
    await sendAsPerson(servers, { from: AGENT, subject: '', raw, isSigned: false });
    await count(2);
    expect(host.gates()).toEqual(['our own mail']);
  });

  it('notices a mail that comes twice, and words that come too often', async () => {
    fresh();
    await start();
    const bob = somebody();
    const mail = { from: bob, subject: 'pay', text: 'please', messageId: '<once@person.test>' };
    await sendAsPerson(servers, mail);
    await count(1);
    await sendAsPerson(servers, { ...mail, text: 'please, now' });
    await count(2);
    expect(host.gates()).toEqual(['same Message-ID again']);
    for (let n = 3; n <= 12; n += 1) {
      await sendAsPerson(servers, { ...mail, messageId: `<${n}@person.test>` });
      await count(n);
    }
    expect(host.texts()).toHaveLength(10);
    expect(host.gates().slice(1)).toEqual(['held: same words again']);
    await host.until(() => host.alerts.length === 1);
    const unproven = { subject: 'pay', text: 'again', isSigned: false, from: somebody() };
    for (let n = 13; n <= 14; n += 1) {
      await sendAsPerson(servers, unproven);
      await count(n);
    }
    expect(host.gates().slice(2)).toEqual(['same words again']);
  });

  it('reads a mail that could not be proven at first where it comes again and is', async () => {
    fresh();
    const bob = somebody();
    await start({ allowFrom: [bob] });
    const mail = { from: bob, subject: 'twice', messageId: '<unproven@person.test>' };
    await sendAsPerson(servers, { ...mail, text: 'unsigned', isSigned: false });
    await count(1);
    await sendAsPerson(servers, { ...mail, text: 'signed' });
    await count(2);
    const levels = queued(host).map(({ sender }) => sender.kind === 'person' && sender.verified);
    expect(levels).toEqual(['unverified', 'verified']);
  });

  it('goes silent in a duel with a machine that looks like a person', async () => {
    fresh();
    const { channel } = await start();
    const bob = somebody();
    let sent = 0;
    for (let round = 0; round < 4; round += 1) {
      const mail = { from: bob, subject: 'ping', text: `ping ${round}`, isSigned: false };
      await sendAsPerson(servers, mail);
      await count(round + 1);
      const question = queued(host)[round];
      if (question === undefined) break;
      await channel.send(answerTo(question, `pong ${round}`), sending()).then(
        () => (sent += 1),
        (error) => expect(error).toBeInstanceOf(DeliveryError),
      );
    }
    expect(sent).toBe(1);
  });

  it('reads only what is new when the server has renumbered the mailbox', async () => {
    fresh();
    await start();
    const bob = somebody();
    for (const n of [1, 2, 3])
      await sendAsPerson(servers, { from: bob, subject: `${n}`, text: `old ${n}` });
    await count(3);
    await stop();
    for (const n of [4, 5])
      await sendAsPerson(servers, { from: bob, subject: `${n}`, text: `new ${n}` });
    await servers.settle();
    await renumber(servers.maildir(AGENT));
    await start();
    await count(5);
    const bodies = host.texts().map((text) => text.split('\n').at(-1));
    expect(bodies.sort()).toEqual(['new 4', 'new 5', 'old 1', 'old 2', 'old 3']);
    expect(host.duplicates).toBe(0);
    await sendAsPerson(servers, { from: bob, subject: '6', text: 'after' });
    await count(6);
  });

  it('survives bombs, says which limit they broke, and reads the next mail', async () => {
    fresh();
    await start();
    const bob = somebody();
    const head = `From: ${bob}\r\nTo: ${AGENT}\r\nDate: ${new Date().toUTCString()}\r\n`;
    const part = (n: number) => `--b\r\nContent-Type: text/plain\r\n\r\npart ${n}\r\n`;
    const deep = (level: number): string =>
      level === 0
        ? 'Content-Type: text/plain\r\n\r\nbottom\r\n'
        : `Content-Type: multipart/mixed; boundary=b${level}\r\n\r\n--b${level}\r\n${deep(level - 1)}\r\n--b${level}--\r\n`;
    const bombs = [
      `${head}Subject: parts\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${Array.from({ length: 2000 }, (_, n) => part(n)).join('')}--b--\r\n`,
      `${head}Subject: depth\r\n${deep(40)}`,
      `${head}Subject: header\r\n${Array.from({ length: 700 }, (_, n) => `X-H${n}: x\r\n`).join('')}\r\nhello\r\n`,
      `${head}Subject: size\r\n\r\n${'x'.repeat(76).concat('\r\n').repeat(350_000)}`,
    ];
    for (const raw of bombs) {
      await sendAsPerson(servers, { from: bob, subject: '', raw, isSigned: false });
    }
    await sendAsPerson(servers, { from: bob, subject: 'after', text: 'still alive' });
    await count(5);
    const reasons = host.texts().flatMap((text) => /not read: (.*)\]/.exec(text)?.[1] ?? []);
    expect(host.gates()).toEqual([]);
    expect(reasons.sort()).toEqual([
      'mail too large',
      'parts nested too deep',
      'too many header lines',
      'too many parts',
    ]);
    expect(host.texts().some((text) => text.endsWith('still alive'))).toBe(true);
  });

  it('stops after three refused log-ins and says what to do', async () => {
    host = createMemoryHost(hastyClock);
    const channel = launchChannel(host, emailConfig(servers, { password: 'wrong' }), deps());
    await expect(channel.ended).rejects.toMatchObject({
      code: 'mail_auth_refused',
      remedy: { kind: 'never' },
    });
    expect(host.statuses.filter(({ kind }) => kind === 'degraded')).toHaveLength(2);
    expect(host.statuses.at(-1)).toMatchObject({
      kind: 'stopped',
      remedy: expect.stringContaining('app password'),
    });
  });

  it('sends no password to a server whose certificate it cannot verify', async () => {
    fresh();
    const channel = launchChannel(host, emailConfig(servers), { lookup: testLookup });
    await host.until(() => host.statuses.some(({ kind }) => kind === 'degraded'), WAIT_MS);
    expect(host.statuses.at(-1)).toMatchObject({ reason: expect.stringMatching(/certificate/i) });
    await channel.stop();
  });

  it('works over STARTTLS both ways', async () => {
    fresh();
    const { imapPort, smtpPort } = servers;
    const changes = {
      imapPort,
      smtpPort,
      imapSecurity: 'starttls',
      smtpSecurity: 'starttls',
    } as const;
    const { channel } = await start(changes);
    const bob = somebody();
    await sendAsPerson(servers, { from: bob, subject: 'starttls', text: 'hi' });
    await count(1);
    await channel.send(answerTo(firstOf(host), 'Hello.'), sending());
    expect(await mailsIn(servers, bob)).toHaveLength(1);
  });

  it('refuses unencrypted mail to any host but loopback', async () => {
    fresh();
    const changes = { imapSecurity: 'none', imapHost: 'mail.nanobot.test' } as const;
    const channel = launchChannel(host, emailConfig(servers, changes), deps());
    await expect(channel.ended).rejects.toMatchObject({ code: 'mail_settings' });
    expect(host.statuses.at(-1)?.kind).toBe('stopped');
  });

  it('gives up at once on an address the server refuses', async () => {
    fresh();
    const { channel } = await start();
    await sendAsPerson(servers, { from: 'gone@person.test', subject: 'gone', text: 'hi' });
    await count(1);
    const sent = channel.send(answerTo(firstOf(host), 'Hello.'), sending());
    await expect(sent).rejects.toMatchObject({ certainty: 'not_sent', remedy: { kind: 'never' } });
  });

  it('answers no bounce, marks the answer and tells the owner why it did not arrive', async () => {
    fresh();
    const { channel } = await start();
    const bob = somebody();
    await sendAsPerson(servers, { from: bob, subject: 'bounce', text: 'hi' });
    await count(1);
    const answer = answerTo(firstOf(host), 'Hello.');
    const receipt = await channel.send(answer, sending());
    const report = (action: string) => ({
      from: 'MAILER-DAEMON@person.test',
      subject: '',
      raw: bounceOf(receipt.nativeIds[0] ?? '', bob, action),
      isSigned: false,
      envelopeFrom: '',
    });
    await sendAsPerson(servers, report('delayed'));
    await count(2);
    expect(host.bounces.size).toBe(0);
    await sendAsPerson(servers, report('failed'));
    await count(3);
    await host.until(() => host.alerts.length === 1);
    expect(host.alerts[0]).toBe(
      `An answer to ${bob} could not be delivered: 5.1.1 (no such address).`,
    );
    expect([...host.bounces]).toEqual([[answer.id, '5.1.1 (no such address)']]);
    expect(host.gates()).toEqual(['empty return path', 'empty return path']);
  });

  it('proves a mailbox both ways, and names the step that fails', async () => {
    const signal = AbortSignal.timeout(WAIT_MS);
    const options = { clock: hastyClock, certificateAuthority: servers.certificate };
    expect(await proveMailbox(emailConfig(servers), signal, options)).toEqual({ kind: 'proven' });
    const wrong = await proveMailbox(emailConfig(servers, { password: 'no' }), signal, options);
    expect(wrong).toMatchObject({
      kind: 'failed',
      step: 'imap',
      remedy: expect.stringContaining('app password'),
    });
    const noSmtp = { smtpPort: servers.imapsPort };
    const half = await proveMailbox(emailConfig(servers, noSmtp), signal, options);
    expect(half).toMatchObject({ kind: 'failed', step: 'smtp' });
  });
});

/** A delivery report as Postfix writes it. */
function bounceOf(messageId: string, recipient: string, action: string): string {
  return [
    'From: Mail Delivery System <MAILER-DAEMON@person.test>',
    `To: ${AGENT}`,
    'Subject: Undelivered Mail Returned to Sender',
    'Auto-Submitted: auto-replied',
    'Content-Type: multipart/report; report-type=delivery-status; boundary=r',
    '',
    '--r\r\n\r\nI could not deliver your mail.',
    '--r\r\nContent-Type: message/delivery-status\r\n',
    'Reporting-MTA: dns; mx.person.test\r\n',
    `Final-Recipient: rfc822; ${recipient}\r\nAction: ${action}\r\nStatus: 5.1.1`,
    '--r\r\nContent-Type: text/rfc822-headers\r\n',
    `Message-ID: ${messageId}\r\nSubject: Re: bounce`,
    '--r--\r\n',
  ].join('\r\n');
}

/** Gives a Maildir a new UIDVALIDITY, as a restored backup has. */
async function renumber(maildir: string): Promise<void> {
  const list = join(maildir, 'dovecot-uidlist');
  const text = await readFile(list, 'utf8');
  const [header = '', ...lines] = text.split('\n');
  const renumbered = header.replace(/V\d+/, `V${Math.floor(Date.now() / 1000) + 1000}`);
  await writeFile(list, [renumbered, ...lines].join('\n'));
  for (const name of ['dovecot.index', 'dovecot.index.log', 'dovecot.index.cache']) {
    await rm(join(maildir, name), { force: true });
  }
}

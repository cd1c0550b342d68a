// Mails of a proven, listed person that once got no answer, through the whole program with a real Dovecot
// and Postfix: each gets one, or the owner is told. What nothing proves stays unanswered.

import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { simpleParser } from 'mailparser';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { echo, type LlmServer, startLlmServer } from '../support/llm-server.ts';
import { describeWithMail, type MailServers, startMailServers } from '../support/mail-servers.ts';
import { mailsIn, sendAsPerson } from '../support/mail-servers-host.ts';
import { AGENT, mailboxAt } from '../support/mailbox-config.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const WAIT_MS = 45_000;
const DAY_MS = 86_400_000;

const PEOPLE = Array.from({ length: 20 }, (_, n) => `dora${n}@person.test`);
let next = 0;
const somebody = () => PEOPLE[next++] ?? '';

type Mail = {
  readonly from: string;
  /** Replace those of an ordinary mail; undefined: left out. */
  readonly fields?: Readonly<Record<string, string | undefined>>;
  /** With the header of its content. */
  readonly content?: string;
  readonly isProven?: boolean;
};

let ids = 0;

/** A mail as the receiving server hands it on: what it found out stands at the top. */
function rawMail({ from, fields, content = '\r\nHello.', isProven = true }: Mail): Buffer {
  const all: Readonly<Record<string, string | undefined>> = {
    ...(isProven
      ? { 'Authentication-Results': 'mx.nanobot.test; dmarc=pass header.from=person.test' }
      : {}),
    From: from,
    To: AGENT,
    Date: new Date().toUTCString(),
    'Message-ID': `<${ids++}@person.test>`,
    Subject: 'A question',
    'MIME-Version': '1.0',
    ...fields,
  };
  const lines = Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${value}\r\n`],
  );
  return Buffer.from(`${lines.join('')}${content}\r\n`);
}

describeWithMail('a mail of a proven person', () => {
  let servers: MailServers;
  let model: LlmServer;
  let home: TestHome;
  let gateway: GatewayProcess;

  const send = async (mail: Mail, raw = rawMail(mail)) =>
    sendAsPerson(servers, { from: mail.from, subject: '', raw: raw.toString(), isSigned: false });
  const answers = (address: string) => mailsIn(servers, address);
  const answered = async (address: string, count = 1) => {
    const counted = async () => (await answers(address)).length;
    await expect.poll(counted, { timeout: WAIT_MS, interval: 300 }).toBe(count);
    return answers(address);
  };
  const answerTo = async (mail: Omit<Mail, 'from'>) => {
    const from = somebody();
    await send({ ...mail, from });
    const [raw = ''] = await answered(from);
    return { raw, mail: await simpleParser(raw) };
  };

  beforeAll(async () => {
    servers = await startMailServers();
    model = await startLlmServer({ respond: echo });
    home = await makeTestHome({
      gateway: { port: 0 },
      agents: { defaults: { model: 'openai/sim-1' } },
      providers: { openai: { apiKey: 'mail-test-key', apiBase: model.openaiBase } },
      channels: {
        email: {
          ...mailboxAt(servers),
          authservId: 'mx.nanobot.test',
          ...{ allowFrom: PEOPLE, quoteOriginal: false },
        },
      },
    });
    gateway = await home.start();
    const { address, credentials: headers } = gateway;
    const isReady = async () => {
      const status = await (await fetch(`${address}/readyz`, { headers })).text();
      return /"email".*"running"/s.test(status);
    };
    await vi.waitUntil(isReady, { timeout: WAIT_MS });
  });
  afterAll(async () => {
    await gateway?.stop();
    await home?.[Symbol.asyncDispose]();
    await model?.[Symbol.asyncDispose]();
    await servers?.[Symbol.asyncDispose]();
  });

  it('is answered each time, also with the words of another one', async () => {
    const [receipts, twice] = [somebody(), somebody()];
    const file = (n: number) =>
      'Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nReceipt.\r\n' +
      `--b\r\nContent-Type: text/plain; name=r${n}.txt\r\nContent-Disposition: attachment; filename=r${n}.txt\r\n\r\nreceipt ${n}\r\n--b--`;
    for (const n of [1, 2, 3]) await send({ from: receipts, content: file(n) });
    await answered(receipts, 3);
    for (const count of [1, 2]) {
      await send({ from: twice, content: '\r\nIs it open?' });
      await answered(twice, count);
    }
  });

  it('is answered once where it is delivered twice', async () => {
    const from = somebody();
    const raw = rawMail({ from });
    await send({ from }, raw);
    await answered(from);
    await send({ from }, Buffer.from(raw.toString().replace('Hello.', 'Hello!!')));
    await send({ from, content: '\r\nAnother one.' });
    await answered(from, 2);
  });

  it.each([
    ['without a date', undefined],
    ['without a date that can be read', 'the day before yesterday'],
    ['with a named zone', 'Thu, 15 Jan 2026 12:00:00 CEST'],
    ['a month old', new Date(Date.now() - 30 * DAY_MS).toUTCString()],
  ])('is answered %s', async (_, date) => {
    await answerTo({ fields: { Date: date } });
  });

  it('is answered as a reply where it has no Message-ID, or one in letters of any script', async () => {
    const without = await answerTo({ fields: { 'Message-ID': undefined } });
    expect(without.raw).toMatch(/^Auto-Submitted: auto-replied\r$/m);
    const other = await answerTo({ fields: { 'Message-ID': '<größe-名@person.test>' } });
    expect(other.raw).toMatch(/^Auto-Submitted: auto-replied\r$/m);
    const [header = ''] = other.raw.split('\r\n\r\n');
    expect(header).toMatch(/^\p{ASCII}*$/u);
  });

  it('keeps its subject, whatever its script and its length', async () => {
    const subject = `👩‍👩‍👧 می‌خواهم क्‍ष Donau\u00addampf ${'and so on '.repeat(50)}end`;
    const encoded = `=?utf-8?B?${Buffer.from(subject).toString('base64')}?=`;
    const { mail } = await answerTo({ fields: { Subject: encoded } });
    expect(mail.subject).toBe(`Re: ${subject}`);
  });

  it.each([
    ['asks for no receipts', 'X-Auto-Response-Suppress', 'DR, RN'],
    ['comes from a provider that counts feedback', 'Feedback-ID', 'i1234:provider'],
  ])('is answered although it %s', async (_, name, value) => {
    await answerTo({ fields: { [name]: value } });
  });

  it.each([
    ['no boundary', 'Content-Type: multipart/mixed\r\n\r\nStill my words.'],
    [
      'a boundary it does not name',
      'Content-Type: multipart/mixed\r\n\r\n--x\r\nContent-Type: text/plain\r\n\r\nStill my words.\r\n--x--',
    ],
    [
      'a boundary that never comes',
      'Content-Type: multipart/mixed; boundary=y\r\n\r\nStill my words.',
    ],
  ])('is read where its parts have %s', async (_, content) => {
    const { mail } = await answerTo({ content });
    expect(mail.text).toContain('Still my words.');
    expect(mail.text).not.toContain('Content-Type');
  });

  it('is read where it is signed in one piece, and called unreadable where it is encrypted', async () => {
    const folder = await temporaryFolder();
    const path = (name: string) => join(folder, name);
    const openssl = (...args: readonly string[]) =>
      execFileSync('openssl', args, { stdio: 'ignore', cwd: folder });
    const made = ['-keyout', 'key.pem', '-out', 'cert.pem', '-subj', '/CN=dora'];
    openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...made);
    const entity = 'Content-Type: text/plain; charset=utf-8\r\n\r\nSigned wörds.\r\n';
    await writeFile(path('in'), entity);
    const content = async () => (await readFile(path('out'), 'utf8')).replace(/^MIME.*\n/, '');
    const signed = ['-signer', 'cert.pem', '-inkey', 'key.pem', '-nodetach', '-in', 'in'];
    openssl('cms', '-sign', ...signed, '-out', 'out');
    const inOne = await answerTo({ content: await content() });
    expect(inOne.mail.text).toContain('Signed wörds.');
    openssl('cms', '-sign', '-stream', ...signed, '-out', 'out');
    const streamed = await answerTo({ content: await content() });
    expect(streamed.mail.text).toContain('Signed wörds.');
    openssl('cms', '-encrypt', '-in', 'in', '-out', 'out', 'cert.pem');
    const encrypted = await answerTo({ content: await content() });
    expect(encrypted.mail.text).toMatch(/not read: it is encrypted/);
  });

  it('is told to the owner where it is not answered, and nobody hears of an unproven one', async () => {
    const [listed, forged] = [somebody(), somebody()];
    const alerts = async () => (await home.logs()).split('owner notified').length - 1;
    const before = await alerts();
    await send({ from: forged, isProven: false });
    await send({ from: forged, isProven: false, fields: { 'List-Id': '<team.person.test>' } });
    await send({ from: listed, fields: { 'List-Id': '<team.person.test>' } });
    await expect.poll(alerts, { timeout: WAIT_MS }).toBe(before + 1);
    expect(await answers(listed)).toEqual([]);
    expect(await answers(forged)).toEqual([]);
  });
});

// Answers over a server that loses connections: the same bytes on every try, a fate that can be
// asked for, budgets, and no way for a strange address to reach the wire.

import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configSchema } from '../../../src/kernel/config/config.ts';
import { DeliveryError } from '../../../src/kernel/message/errors.ts';
import { sending } from '../../contract/channel.ts';
import { portOf } from '../../support/listening.ts';
import {
  answerTo,
  firstOf,
  hastyClock,
  looseMessage,
  type RunningChannel,
  startChannel,
  testLookup,
} from '../../support/mail-servers-host.ts';
import { type ScriptedImap, startScriptedImap } from '../../support/mail-servers-scripted.ts';
import { createMemoryHost, type MemoryHost } from '../../support/memory-host.ts';

const MAIL = [
  'From: Anna <anna@person.test>',
  'To: agent@nanobot.test',
  'Subject: AW: Lunch',
  'Date: Thu, 15 Jan 2026 12:00:00 +0000',
  'Message-ID: <scripted@person.test>',
  'References: <root@person.test>',
  '',
  'Where?',
  '',
].join('\r\n');
const MINUTE_MS = 60_000;

type LossySmtp = AsyncDisposable & {
  readonly port: number;
  /** The text of every mail that was handed over completely. */
  readonly texts: readonly string[];
  /** Of every envelope, in order. */
  readonly recipients: readonly string[];
  /** While true, the connection is cut behind the final dot. */
  isCutting: boolean;
};

async function startLossySmtp(): Promise<LossySmtp> {
  const texts: string[] = [];
  const recipients: string[] = [];
  const server = createServer((socket) => {
    let text = '';
    let isData = false;
    socket.on('error', () => undefined).write('220 hello\r\n');
    socket.on('data', (chunk) => {
      const line = chunk.toString();
      if (!isData) {
        const [, recipient] = /^RCPT TO:<([^>]*)>/im.exec(line) ?? [];
        if (recipient !== undefined) recipients.push(recipient);
        isData = line.startsWith('DATA');
        socket.write(isData ? '354 go on\r\n' : '250 ok\r\n');
        return;
      }
      text += line;
      if (!text.endsWith('\r\n.\r\n')) return;
      texts.push(text);
      text = '';
      isData = false;
      if (smtp.isCutting) socket.destroy();
      else socket.write('250 taken\r\n');
    });
  });
  const port = await portOf(server);
  const smtp: LossySmtp = {
    port,
    texts,
    recipients,
    isCutting: false,
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  };
  return smtp;
}

let imap: ScriptedImap;
let smtp: LossySmtp;
let host: MemoryHost;
let running: RunningChannel;
let aheadMs = 0;

beforeEach(async () => {
  imap = await startScriptedImap({ mail: MAIL, body: 'whole' });
  smtp = await startLossySmtp();
  aheadMs = 0;
  host = createMemoryHost({ ...hastyClock, now: () => hastyClock.now() + aheadMs });
  host.storedCursor = '7:0:0';
  const config = {
    ...configSchema.parse({}).channels.email,
    imapHost: '127.0.0.1',
    imapPort: imap.port,
    imapSecurity: 'none',
    smtpHost: '127.0.0.1',
    smtpPort: smtp.port,
    smtpSecurity: 'none',
    username: 'agent@nanobot.test',
  } as const;
  running = await startChannel(host, { ...config, password: 'x' }, { lookup: testLookup });
  await host.until(() => host.texts().length === 1);
});

afterEach(async () => {
  await running.stop();
  await imap[Symbol.asyncDispose]();
  await smtp[Symbol.asyncDispose]();
});

const failureOf = (sent: Promise<unknown>) =>
  sent.then(
    () => undefined,
    (error) => (error instanceof DeliveryError ? error : undefined),
  );

describe('an answer whose fate is unknown', () => {
  it('is the same mail, byte for byte, on the second try', async () => {
    const answer = answerTo(firstOf(host), 'At **Luigi**, or `here`.');
    smtp.isCutting = true;
    expect(await failureOf(running.channel.send(answer, sending()))).toMatchObject({
      certainty: 'unknown',
    });
    smtp.isCutting = false;
    aheadMs = 20 * MINUTE_MS;
    await running.channel.send(answer, sending({ attempt: 2, repeatsUnknown: true }));
    expect(smtp.texts).toHaveLength(2);
    expect(smtp.texts[1]).toBe(smtp.texts[0]);
    expect(smtp.texts[0]).toMatch(/^Subject: AW: Lunch\r$/m);
    expect(smtp.texts[0]).toMatch(/^References: <root@person\.test> <scripted@person\.test>\r$/m);
  });

  it('counts as absent only once it had time to show up', async () => {
    const answer = answerTo(firstOf(host), 'Hello.');
    smtp.isCutting = true;
    await failureOf(running.channel.send(answer, sending()));
    const signal = AbortSignal.timeout(10 * MINUTE_MS);
    expect(await running.channel.reconcile?.(answer, signal)).toBeUndefined();
    aheadMs = 11 * MINUTE_MS;
    expect(await running.channel.reconcile?.(answer, signal)).toBe('absent');
    await failureOf(running.channel.send(answer, sending({ attempt: 2 })));
    expect(await running.channel.reconcile?.(answer, signal)).toBeUndefined();
  });

  it('is known once it was sent, and not sent again', async () => {
    const answer = answerTo(firstOf(host), 'Hello.');
    const receipt = await running.channel.send(answer, sending());
    const signal = AbortSignal.timeout(10 * MINUTE_MS);
    expect(await running.channel.reconcile?.(answer, signal)).toEqual(receipt);
    expect(await running.channel.send(answer, sending({ attempt: 2 }))).toEqual(receipt);
    expect(smtp.texts).toHaveLength(1);
  });
});

it('hands a letter over for each address that gets a copy, and names them all in it', async () => {
  const copies = ['bob@person.test', 'eve@person.test'];
  const letter = { ...looseMessage('anna@person.test', 'ab', 'Hi'), subject: 'Plan', copies };
  await running.channel.send(letter, sending());
  expect(smtp.recipients).toEqual(['anna@person.test', ...copies]);
  expect(new Set(smtp.texts).size).toBe(1);
  expect(smtp.texts[0]).toMatch(/^Cc: bob@person\.test, eve@person\.test\r$/m);
});

describe('the budget', () => {
  it('gives an unproven sender one answer a day', async () => {
    const question = firstOf(host);
    await running.channel.send(answerTo(question, 'One.', 0), sending());
    const second = await failureOf(running.channel.send(answerTo(question, 'Two.', 1), sending()));
    expect(second).toMatchObject({ code: 'mail_limit', remedy: { kind: 'never' } });
    aheadMs = 25 * 60 * MINUTE_MS;
    await running.channel.send(answerTo(question, 'Three.', 2), sending());
    expect(smtp.texts).toHaveLength(2);
  });

  it('counts answers that are sent side by side', async () => {
    const question = firstOf(host);
    const sends = [0, 1, 2, 3].map((n) =>
      failureOf(running.channel.send(answerTo(question, `Answer ${n}.`, n), sending())),
    );
    const failures = (await Promise.all(sends)).filter((error) => error !== undefined);
    expect(failures).toHaveLength(3);
    expect(smtp.texts).toHaveLength(1);
  });
});

it('lets no strange recipient reach the wire', async () => {
  const addresses = [
    'anna@person.test\r\nRCPT TO:<eve@evil.test>',
    'anna@person.test>, <eve@evil.test',
    '"eve@evil.test"@person.test',
    'eve@evil.test anna@person.test',
    'anna@person.test,eve@evil.test',
    'anna@[127.0.0.1]',
    'Anna <anna@person.test>',
    'anna\u0000@person.test',
    'unknown',
    '',
  ];
  for (const address of addresses) {
    const sent = running.channel.send(looseMessage(address, '0123456789abcdef', 'Hi'), sending());
    expect(await failureOf(sent)).toMatchObject({
      code: 'mail_recipient',
      certainty: 'not_sent',
      remedy: { kind: 'never' },
    });
  }
  expect(smtp.texts).toEqual([]);
});

it('says that nothing was sent while the channel is down', async () => {
  await running.stop();
  const sent = running.channel.send(looseMessage('anna@person.test', 'ab', 'Hi'), sending());
  expect(await failureOf(sent)).toMatchObject({
    certainty: 'not_sent',
    remedy: { kind: 'backoff' },
  });
});

// A person, a mailbox and the whole program: a mail goes in, an answer comes back in its thread.

import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ConfigInput } from '../../src/kernel/config/config.ts';
import { runNanobot } from '../cli/run-nanobot.ts';
import { freePorts } from '../support/free-ports.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { startLlmServer } from '../support/llm-server.ts';
import { describeWithMail, type MailServers, startMailServers } from '../support/mail-servers.ts';
import { sendAsPerson, withMailbox } from '../support/mail-servers-host.ts';
import { AGENT, mailboxAt } from '../support/mailbox-config.ts';

const WAIT_MS = 45_000;
const ANNA = 'anna@person.test';
const BEN = 'ben@person.test';

describeWithMail('the gateway with a mailbox', () => {
  let servers: MailServers;
  let home: TestHome;

  beforeAll(async () => {
    servers = await startMailServers();
    home = await makeTestHome({
      ...configFor(servers, ANNA),
      agents: { defaults: { model: 'demo/demo' } },
    });
  });
  afterAll(async () => {
    await home?.[Symbol.asyncDispose]();
    await servers?.[Symbol.asyncDispose]();
  });

  it('answers a listed person and nobody else', async () => {
    await using gateway = await home.start();
    await ready(gateway);
    const ask = { subject: 'Who are you?', text: 'Please tell me.', isSigned: false };
    await sendAsPerson(servers, { ...ask, from: 'eve@stranger.test' });
    await sendAsPerson(servers, { ...ask, from: ANNA, messageId: '<who@person.test>' });
    const answer = await nextMail(servers, ANNA);
    expect(answer).toMatch(/^Subject: Re: Who are you\?\r$/m);
    expect(answer).toMatch(/^In-Reply-To: <who@person\.test>\r$/m);
    await servers.settle();
    const toEve = await withMailbox(servers, 'eve@stranger.test', 'INBOX', async (client) =>
      client.mailbox === false ? 0 : client.mailbox.exists,
    );
    expect(toEve).toBe(0);
    expect(await gateway.stop()).toBe(0);
  });

  it('sends itself a mail and finds it again, which nobody answers', async () => {
    await using gateway = await home.start();
    await ready(gateway);
    const { code, stdout } = await runNanobot(['selftest', '--live'], { home: home.path });
    expect(stdout).toMatch(/^email +passed +receiving \d+ ms, sent \d+ ms, arrived \d+ ms/m);
    expect(code).toBe(0);
    await servers.settle();
    const log = await home.logs();
    expect(log).not.toContain('self-test failed');
    const waiting = await runNanobot(['pair', 'list', '--json'], { home: home.path });
    expect(waiting.stdout).not.toContain(AGENT);
    expect(await mailsOf(servers, AGENT)).not.toContain('Re: nanobot self-test');
    expect(await gateway.stop()).toBe(0);
  });

  it('says in words that its test mail did not go out, and what to do', async () => {
    const { smtpPort: _closed, ...email } = configFor(servers, ANNA).channels?.email ?? {};
    const [port = 0] = await freePorts(1);
    await using deaf = await makeTestHome({
      ...{ gateway: { port: 0 }, agents: { defaults: { model: 'demo/demo' } } },
      channels: { email: { ...email, smtpPort: port } },
    });
    await using gateway = await deaf.start();
    await ready(gateway);
    const run = await runNanobot(['selftest', '--live'], { home: deaf.path });
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('failed: email')]);
    expect(run.stdout).toMatch(
      /^email +FAILED +receiving \d+ ms\n {2}.*ECONNREFUSED.*nanobot doctor/m,
    );
  });

  it('sends the answer under way before it leaves when it is told to stop', async () => {
    await using model = await startLlmServer();
    const thought = Promise.withResolvers<void>();
    model.respond(() => ({ chunks: ['nonce-last ', thought.promise, 'words'] }));
    await using busy = await makeTestHome({
      ...configFor(servers, BEN),
      agents: { defaults: { model: 'openai/sim-1' } },
      providers: { openai: { apiKey: 'mail-test-key', apiBase: model.openaiBase } },
    });
    await using gateway = await busy.start();
    await ready(gateway);
    await sendAsPerson(servers, { subject: 'Think', text: 'long', isSigned: false, from: BEN });
    await model.received(1);
    const stopped = gateway.stop();
    await gateway.printed(/stopp/i);
    thought.resolve();
    expect(await stopped).toBe(0);
    expect(await nextMail(servers, BEN)).toContain('nonce-last words');
  });
});

function configFor(servers: MailServers, person: string): ConfigInput {
  return {
    gateway: { port: 0 },
    channels: {
      email: {
        ...mailboxAt(servers),
        allowFrom: [person],
        acceptUnverified: true,
      },
    },
  };
}

/** Waits until the mailbox is followed: mail from before the first start is never answered. */
async function ready({ address, credentials: headers }: GatewayProcess): Promise<void> {
  const late = AbortSignal.timeout(WAIT_MS);
  for (;;) {
    const response = await fetch(`${address}/readyz`, { headers, signal: late });
    const text = await response.text();
    if (/"email".*"running"/s.test(text)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** The headers of all mails in the inbox. */
async function mailsOf(servers: MailServers, address: string): Promise<string> {
  return withMailbox(servers, address, 'INBOX', async (client) => {
    if (client.mailbox === false || client.mailbox.exists === 0) return '';
    const mails = await client.fetchAll('1:*', { headers: true });
    return mails.map(({ headers }) => String(headers)).join('\n');
  });
}

/** The first mail in the mailbox, as soon as it is there. */
async function nextMail(servers: MailServers, address: string): Promise<string> {
  return withMailbox(servers, address, 'INBOX', async (client) => {
    const news = new Promise<void>((resolve) => client.once('exists', () => resolve()));
    if (client.mailbox !== false && client.mailbox.exists === 0) {
      void client.idle();
      const late = AbortSignal.timeout(WAIT_MS);
      const missed = new Promise<never>((_, reject) => {
        late.addEventListener('abort', () => reject(new Error('no answer came')), { once: true });
      });
      await Promise.race([news, missed]);
    }
    const mail = await client.fetchOne('1', { source: true });
    return mail === false || mail === undefined ? '' : (mail.source?.toString('utf8') ?? '');
  });
}

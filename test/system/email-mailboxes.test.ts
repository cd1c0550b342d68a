// One owner, several mailboxes, the whole program: each answers from its own address, one that cannot
// be opened is named and holds up no other, and what came to two of them is answered once.

import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ConfigInput } from '../../src/kernel/config/config.ts';
import { runNanobot } from '../cli/run-nanobot.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { type LlmServer, startLlmServer } from '../support/llm-server.ts';
import { describeWithMail, type MailServers, startMailServers } from '../support/mail-servers.ts';
import { mailsIn, sendAsPerson } from '../support/mail-servers-host.ts';
import { AGENT, mailboxAt } from '../support/mailbox-config.ts';

const WAIT_MS = 45_000;
const BOTH_READY = /"email","ready":true.*"email@work","ready":true/s;
const WORK = 'work@nanobot.test';
const ANNA = 'anna@person.test';
const BEN = 'ben@person.test';

describeWithMail('several mailboxes', () => {
  let servers: MailServers;
  let model: LlmServer;
  let home: TestHome;

  beforeAll(async () => {
    servers = await startMailServers();
    model = await startLlmServer();
    let answers = 0;
    model.respond(() => {
      answers += 1;
      return { chunks: [`Answer ${answers}.`] };
    });
    home = await makeTestHome({ ...configFor(servers), ...modelAt(model.openaiBase) });
  });
  afterAll(async () => {
    await home?.[Symbol.asyncDispose]();
    await model?.[Symbol.asyncDispose]();
    await servers?.[Symbol.asyncDispose]();
  });

  it('answer each from its own address, what came to both once, also after a kill', async () => {
    await using gateway = await home.start();
    await reported(gateway, BOTH_READY);
    await toOne(servers, ANNA, AGENT, 'first');
    await toOne(servers, ANNA, WORK, 'second');
    // Ben may write to one of them only.
    await toOne(servers, BEN, AGENT, 'third');
    await toOne(servers, BEN, WORK, 'fourth');
    await toBoth(servers, ANNA, 'fifth');
    await toOne(servers, WORK, AGENT, 'own');
    const doctor = await runNanobot(['doctor'], { home: home.path });
    expect(doctor.stdout).toMatch(/✓ email +login accepted by 127\.0\.0\.1 and 127\.0\.0\.1/);
    expect(doctor.stdout).toMatch(/✓ email@work +login accepted by 127\.0\.0\.1 and 127\.0\.0\.1/);
    expect(doctor.stdout).toMatch(/✗ email@broken +imap: /);
    const toAnna = await mailsTo(servers, ANNA, 3);
    expect(toAnna.map(fromAndParent).sort(byParent)).toEqual([
      [expect.stringMatching(/^(agent|work)@/), '<fifth@person.test>'],
      [AGENT, '<first@person.test>'],
      [WORK, '<second@person.test>'],
    ]);

    // A mail that the kill cuts off is sent again only ten minutes later.
    await mailsTo(servers, BEN, 1);
    // What was refused is in the log before the kill, and no more comes of it.
    await expect.poll(() => home.logs()).toContain('"gate":"our own mail"');
    await gateway.kill();
    await toBoth(servers, BEN, 'sixth');
    await using again = await home.start();
    await reported(again, BOTH_READY);
    const toBen = await mailsTo(servers, BEN, 2);
    expect(toBen.map(fromAndParent).sort(byParent)).toEqual([
      [WORK, '<fourth@person.test>'],
      [WORK, '<sixth@person.test>'],
    ]);
    expect(await mailsIn(servers, ANNA)).toHaveLength(3);
    expect(await mailsIn(servers, WORK)).not.toContainEqual(expect.stringContaining('Re: own'));
    await expect.poll(() => home.logs()).toContain('"gate":"answered from another mailbox"');
    const own = async () => (await home.logs()).match(/"gate":"our own mail"/g);
    await expect.poll(own).toHaveLength(1);

    await reported(again, /"email@broken".*(degraded|stopped)/s);
    const { stdout } = await runNanobot(['channels', 'status'], { home: home.path });
    expect(stdout).toMatch(/^email +on as agent@nanobot\.test/m);
    expect(stdout).toMatch(/^email@work +on as work@nanobot\.test/m);
    expect(stdout).toMatch(/^email@broken +(retrying|stopped).*log.?in/im);
    expect(await again.stop()).toBe(0);
  });
});

const modelAt = (apiBase: string): ConfigInput => ({
  agents: { defaults: { model: 'openai/sim-1' } },
  providers: { openai: { apiKey: 'mail-test-key', apiBase } },
});

function configFor(servers: MailServers): ConfigInput {
  const { password } = servers;
  const own = (username: string, allowFrom: string[]) => ({ username, password, allowFrom });
  return {
    gateway: { port: 0 },
    channels: {
      email: {
        ...mailboxAt(servers),
        allowFrom: [ANNA],
        authservId: 'mx.nanobot.test',
        strangers: 'closed',
        accounts: {
          work: own(WORK, [ANNA, BEN]),
          broken: { ...own('broken@nanobot.test', [ANNA]), password: 'not the password' },
        },
      },
    },
  };
}

function toOne(servers: MailServers, from: string, to: string, subject: string) {
  return send(servers, from, [to], subject);
}

const toBoth = (servers: MailServers, from: string, subject: string) =>
  send(servers, from, [AGENT, WORK], subject);

async function send(servers: MailServers, from: string, to: readonly string[], subject: string) {
  const mail = { from, to: to.join(', '), envelopeTo: to, subject, text: `About the ${subject}.` };
  const domain = from.slice(from.indexOf('@') + 1);
  const proof = `mx.nanobot.test; dmarc=pass header.from=${domain}`;
  const headers = { 'Authentication-Results': proof };
  const messageId = `<${subject}@person.test>`;
  await sendAsPerson(servers, { ...mail, headers, messageId, isSigned: false });
}

/** Every mail of a person, once there are as many. */
async function mailsTo(servers: MailServers, person: string, count: number) {
  const late = AbortSignal.timeout(WAIT_MS);
  for (;;) {
    const mails = await mailsIn(servers, person);
    if (mails.length >= count) return mails;
    late.throwIfAborted();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function fromAndParent(mail: string): readonly [string | undefined, string | undefined] {
  return [
    /^From: .*?([a-z]+@nanobot\.test)/m.exec(mail)?.[1],
    /^In-Reply-To: (\S+)/m.exec(mail)?.[1],
  ];
}

const byParent = (one: readonly unknown[], other: readonly unknown[]) =>
  String(one[1]).localeCompare(String(other[1]));

/** Waits until the gateway says so of its channels. */
async function reported({ address, credentials: headers }: GatewayProcess, words: RegExp) {
  const late = AbortSignal.timeout(WAIT_MS);
  for (;;) {
    const response = await fetch(`${address}/readyz`, { headers, signal: late });
    if (words.test(await response.text())) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

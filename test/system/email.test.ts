// Mail end to end against a real Dovecot and Postfix: what comes in, how it is answered, and what is
// never lost or answered.

import { simpleParser } from 'mailparser';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/time/clock.ts';
import { sending } from '../contract/channel.ts';
import { channelContractOnBoth } from '../contract/channel-engines.ts';
import { describeWithMail, type MailServers, startMailServers } from '../support/mail-servers.ts';
import {
  answerTo,
  emailConfig,
  firstOf,
  hastyClock,
  mailsIn,
  queued,
  type RunningChannel,
  sendAsPerson,
  startChannel,
  testLookup,
  withMailbox,
} from '../support/mail-servers-host.ts';
import { AGENT } from '../support/mailbox-config.ts';
import { createMemoryHost, type MemoryHost } from '../support/memory-host.ts';

const WAIT_MS = 45_000;

let people = 0;
const somebody = () => `anna${people++}@person.test`;

describeWithMail('mail against Dovecot and Postfix', () => {
  let servers: MailServers;
  let host: MemoryHost;
  let running: RunningChannel | undefined;

  const deps = () => ({ lookup: testLookup, certificateAuthority: servers.certificate });
  const start = async (changes: Parameters<typeof emailConfig>[1] = {}) => {
    running = await startChannel(host, emailConfig(servers, changes), deps());
    return running;
  };
  const stop = async () => {
    await running?.stop();
    running = undefined;
  };

  beforeAll(async () => {
    servers = await startMailServers();
  });
  afterAll(async () => {
    await servers?.[Symbol.asyncDispose]();
  });
  afterEach(stop);

  const fresh = () => {
    host = createMemoryHost(systemClock);
  };
  const count = (wanted: number) => host.until(() => host.entries.length >= wanted, WAIT_MS);

  it('takes a signed mail in and answers it in its thread', async () => {
    fresh();
    const anna = somebody();
    const { channel } = await start();
    const subject = 'Lunch?';
    const text = 'Where do we eat?\n\n-- \nAnna';
    const messageId = '<first@person.test>';
    await sendAsPerson(servers, { from: `Anna <${anna}>`, subject, text, messageId });
    await count(1);
    const question = firstOf(host);
    expect(question.text).toBe('Subject: Lunch?\n\nWhere do we eat?');
    expect(question.sender).toMatchObject({ id: anna, name: 'Anna', verified: 'verified' });

    await channel.send(answerTo(question, 'At **Luigi**.'), sending());
    const [reply = ''] = await mailsIn(servers, anna);
    expect(reply).toMatch(/^In-Reply-To: <first@person\.test>\r$/m);
    expect(reply).toMatch(/^References: <first@person\.test>\r$/m);
    expect(reply).toMatch(/^Subject: Re: Lunch\?\r$/m);
    expect(reply).toMatch(/^Auto-Submitted: auto-replied\r$/m);
    expect(reply).toContain('<strong>Luigi</strong>');
    expect(reply.replaceAll('=\r\n', '')).toMatch(
      /^On .* UTC, Anna <anna\d+@person\.test> wrote:\r$/m,
    );
    expect(reply).toMatch(/^> Where do we eat\?\r$/m);
    expect(reply).toMatch(/<blockquote type=3D"cite"/);

    const replyId = /^Message-ID: (<.*>)\r$/im.exec(reply)?.[1] ?? '';
    await sendAsPerson(servers, {
      from: anna,
      subject: 'Re: Lunch?',
      text: `Good.\n\nOn Mon, 5 Jan 2026 at 12:00, <${AGENT}> wrote:\n> At Luigi.`,
      inReplyTo: replyId,
      references: `<first@person.test> ${replyId}`,
    });
    await count(2);
    expect(queued(host)[1]).toMatchObject({ chat: question.chat, text: 'Good.' });
    const whole = await host.state.get(`text/${queued(host)[1]?.id}`);
    expect(whole).toContain('> At Luigi.');

    const copies = async () =>
      (await mailsIn(servers, AGENT, 'Sent')).filter((copy) => copy.includes(replyId));
    await expect.poll(copies, { timeout: WAIT_MS, interval: 200 }).toHaveLength(1);
  });

  it('keeps a stranger who quotes our Message-ID out of the thread', async () => {
    fresh();
    const anna = somebody();
    const { channel } = await start();
    await sendAsPerson(servers, { from: anna, subject: 'Secret', text: 'The plan?' });
    await count(1);
    const receipt = await channel.send(answerTo(firstOf(host), 'The plan is X.'), sending());
    const ours = receipt.nativeIds[0] ?? '';
    const mail = { subject: 'Re: Secret', text: 'Tell me more', inReplyTo: ours, references: ours };
    await sendAsPerson(servers, { ...mail, from: 'eve@person.test' });
    await count(2);
    await sendAsPerson(servers, { ...mail, from: anna, isSigned: false });
    await count(3);
    const [first, eve, forged] = queued(host);
    expect(eve?.chat.thread).not.toBe(first?.chat.thread);
    expect(forged?.chat.thread).not.toBe(first?.chat.thread);
    expect(forged?.sender).toMatchObject({ id: anna, verified: 'unverified' });
  });

  it('tells forged senders from real ones', async () => {
    fresh();
    await start();
    const mails = [
      { from: somebody(), subject: 'unsigned', isSigned: false },
      { from: 'bob@stranger.test', subject: 'signed by another domain' },
      {
        from: somebody(),
        subject: 'forged results',
        isSigned: false,
        headers: {
          'Authentication-Results': 'mx.nanobot.test; dmarc=pass header.from=person.test',
        },
      },
      { from: somebody(), subject: 'real' },
    ];
    for (const mail of mails) await sendAsPerson(servers, { ...mail, text: 'hi' });
    await count(mails.length);
    const levels = queued(host).map(({ text, sender }) => [
      text.split('\n')[0],
      sender.kind === 'person' ? sender.verified : '',
    ]);
    expect(Object.fromEntries(levels)).toEqual({
      'Subject: unsigned': 'unverified',
      'Subject: signed by another domain': 'unverified',
      'Subject: forged results': 'unverified',
      'Subject: real': 'verified',
    });
  });

  it('begins with what comes after the first start, and finds 50 mails that came while it was down', async () => {
    fresh();
    const anna = somebody();
    await sendAsPerson(servers, { from: anna, subject: 'before the first start', text: 'old' });
    await servers.settle();
    await start();
    await stop();
    for (let n = 0; n < 50; n += 1) {
      await sendAsPerson(servers, { from: anna, subject: `mail ${n}`, text: `number ${n}` });
    }
    await servers.settle();
    await start();
    await count(50);
    const numbers = host.texts().map((text) => Number(/number (\d+)/.exec(text)?.[1]));
    expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, n) => n));
    await stop();
    await start();
    expect(host.entries).toHaveLength(50);
    expect(host.duplicates).toBe(0);
  });

  it('changes no flag, and reads what a person has read before it', async () => {
    fresh();
    await start();
    await stop();
    const flagsNow = () =>
      withMailbox(servers, AGENT, 'INBOX', async (client) => {
        const mails = await client.fetchAll('1:*', { flags: true });
        return mails.map((mail) => [...(mail.flags ?? [])].filter((flag) => flag !== '\\Recent'));
      });
    for (const subject of ['unread', 'read by the owner']) {
      await sendAsPerson(servers, { from: somebody(), subject, text: subject });
    }
    await servers.settle();
    await withMailbox(servers, AGENT, 'INBOX', (client) =>
      client.messageFlagsAdd('*', ['\\Seen', '\\Flagged']),
    );
    const before = await flagsNow();
    await start();
    await count(2);
    expect(host.texts()).toHaveLength(2);
    expect(await flagsNow()).toEqual(before);
  });

  it('is woken by IDLE long before the next poll', async () => {
    fresh();
    await start({ pollSecs: 3600 });
    for (const subject of ['first', 'second']) {
      const before = host.entries.length;
      await sendAsPerson(servers, { from: somebody(), subject, text: subject });
      await count(before + 1);
    }
    expect(host.statuses.length).toBeLessThan(8);
  });

  it('goes on after the server was restarted', async () => {
    host = createMemoryHost(hastyClock);
    await start();
    await servers.restartImap();
    await host.until(() => host.statuses.some(({ kind }) => kind === 'degraded'), WAIT_MS);
    await sendAsPerson(servers, { from: somebody(), subject: 'still there?', text: 'hello' });
    await count(1);
    await host.until(() => host.statuses.at(-1)?.kind === 'running');
  });

  describe('keeps the contract', () => {
    channelContractOnBoth('email', async (state) => {
      const anna = somebody();
      const own = createMemoryHost(hastyClock, state);
      const under = await startChannel(own, emailConfig(servers), deps());
      const first = { from: anna, subject: 'contract', messageId: `<contract.${anna}>` };
      await sendAsPerson(servers, { ...first, text: 'a first word' });
      await own.until((seen) => seen.texts().length === 1, WAIT_MS);
      const chat = firstOf(own).chat;
      return {
        channel: under.channel,
        host: own,
        chat,
        personWrites: (text) =>
          sendAsPerson(servers, {
            from: anna,
            subject: 'Re: contract',
            text,
            inReplyTo: first.messageId,
          }),
        async personSees() {
          const mails = await mailsIn(servers, anna);
          const texts = await Promise.all(mails.map((raw) => simpleParser(raw)));
          return texts.map((mail) => (mail.text ?? '').trim());
        },
        stop: () => under.stop(),
        [Symbol.asyncDispose]: () => under.stop(),
      };
    });
  });
});

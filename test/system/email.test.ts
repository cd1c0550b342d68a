// Mail end to end against a real Dovecot and Postfix.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type MailServers, mailServersAbsent, startMailServers } from '../support/mail-servers.ts';
import {
  answerTo,
  emailConfig,
  MailHost,
  mailsIn,
  type RunningChannel,
  sendAsPerson,
  sendContext,
  startChannel,
  testLookup,
} from '../support/mail-servers-host.ts';

const absent = mailServersAbsent();
if (absent !== undefined) console.log(`skipped: mail against Dovecot and Postfix (${absent})`);

describe.skipIf(absent !== undefined)('mail against Dovecot and Postfix', () => {
  let servers: MailServers;
  let host: MailHost;
  let running: RunningChannel | undefined;

  const deps = () => ({ lookup: testLookup, certificateAuthority: servers.certificate });
  const start = async () => {
    running = await startChannel(host, emailConfig(servers), deps());
    return running;
  };

  beforeAll(async () => {
    const started = await startMailServers();
    if ('absent' in started) throw new Error(started.absent);
    servers = started;
  });
  afterAll(async () => {
    await servers?.[Symbol.asyncDispose]();
  });
  afterEach(async () => {
    await running?.stop();
    running = undefined;
    await host.close();
  });

  it('takes a signed mail in and answers it in its thread', async () => {
    host = await MailHost.open();
    const { channel } = await start();
    await sendAsPerson(servers, {
      from: 'Anna <Anna@person.test>',
      subject: 'Lunch?',
      text: 'Where do we eat?\n\n-- \nAnna',
      messageId: '<first@person.test>',
    });
    await host.until(() => host.queued.length === 1);
    const question = host.queued[0];
    if (question === undefined) throw new Error('no question');
    expect(question.text).toBe('Subject: Lunch?\n\nWhere do we eat?');
    expect(question.sender).toMatchObject({ id: 'anna@person.test', verified: 'verified' });

    const answer = answerTo(question, 'At **Luigi**.');
    await channel.send(answer, sendContext);
    const [reply = ''] = await mailsIn(servers, 'anna@person.test', 1);
    expect(reply).toMatch(/^In-Reply-To: <first@person\.test>\r$/m);
    expect(reply).toMatch(/^References: <first@person\.test>\r$/m);
    expect(reply).toMatch(/^Subject: Re: Lunch\?\r$/m);
    expect(reply).toMatch(/^Auto-Submitted: auto-replied\r$/m);
    expect(reply).toContain('<strong>Luigi</strong>');
    const [copy = ''] = await mailsIn(servers, 'agent@nanobot.test', 1, 'Sent');
    expect(copy).toContain('Subject: Re: Lunch?');

    const replyId = /^Message-ID: (<.*>)\r$/im.exec(reply)?.[1] ?? '';
    await sendAsPerson(servers, {
      from: 'anna@person.test',
      subject: 'Re: Lunch?',
      text: `Good.\n\nOn Mon, 5 Jan 2026 at 12:00, <agent@nanobot.test> wrote:\n> At Luigi.`,
      inReplyTo: replyId,
      references: `<first@person.test> ${replyId}`,
    });
    await host.until(() => host.queued.length === 2);
    expect(host.queued[1]?.chat).toEqual(question.chat);
    expect(host.queued[1]?.text).toBe('Good.');
  });
});

// Answers to mails with several recipients, and copies and answers that come back, against a real
// Dovecot and Postfix.

import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { EmailConfig } from '../../src/channels/email/settings.ts';
import { createCheckInbox } from '../../src/features/mail-bridge/index.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { sending } from '../contract/channel.ts';
import { describeWithMail, type MailServers, startMailServers } from '../support/mail-servers.ts';
import {
  answerTo,
  emailConfig,
  firstOf,
  looseMessage,
  mailsIn,
  type RunningChannel,
  sendAsPerson,
  startChannel,
  testLookup,
} from '../support/mail-servers-host.ts';
import { AGENT } from '../support/mailbox-config.ts';
import { createMemoryHost, type MemoryHost } from '../support/memory-host.ts';
import { createWorkspace } from '../tools/workspace-fixture.ts';

const WAIT_MS = 45_000;

describeWithMail('a mail with several recipients', () => {
  let servers: MailServers;
  let host: MemoryHost;
  let running: RunningChannel | undefined;
  let people = 0;

  const start = async (changes: Partial<EmailConfig>) => {
    host = createMemoryHost(systemClock);
    const deps = { lookup: testLookup, certificateAuthority: servers.certificate };
    running = await startChannel(host, emailConfig(servers, changes), deps);
    return running.channel;
  };
  const somebody = () => `person${people++}@person.test`;

  beforeAll(async () => {
    servers = await startMailServers();
  });
  afterAll(async () => {
    await servers?.[Symbol.asyncDispose]();
  });
  afterEach(async () => {
    await running?.stop();
    running = undefined;
  });

  it('is answered to its sender alone by default', async () => {
    const [anna, bob] = [somebody(), somebody()];
    const channel = await start({ allowFrom: [anna, bob] });
    await sendAsPerson(servers, { from: anna, cc: bob, subject: 'Lunch', text: 'Where?' });
    await host.until(() => host.texts().length === 1, WAIT_MS);
    expect(host.texts()[0]).toContain(`[sent to ${bob} too; your answer goes to the sender only]`);
    await channel.send(answerTo(firstOf(host), 'At Luigi.'), sending());
    const [reply = ''] = await mailsIn(servers, anna);
    expect(reply).toContain('At Luigi.');
    expect(reply).not.toContain(bob);
    expect(await mailsIn(servers, bob)).toEqual([]);
  });

  it('is answered to all whom the allow list names where that is configured', async () => {
    const [anna, bob, eve] = [somebody(), somebody(), somebody()];
    const channel = await start({ allowFrom: [anna, bob, '*'], replyAll: 'trusted' });
    const cc = `Bob <${bob}>, ${eve}, ${AGENT}`;
    await sendAsPerson(servers, { from: anna, cc, subject: 'Lunch', text: 'Where?' });
    await host.until(() => host.texts().length === 1, WAIT_MS);
    await channel.send(answerTo(firstOf(host), 'At Luigi.'), sending());
    const [toAnna = ''] = await mailsIn(servers, anna);
    const [toBob = ''] = await mailsIn(servers, bob);
    expect(toAnna).toMatch(new RegExp(`^Cc: ${bob}\r$`, 'm'));
    expect(toBob).toContain('At Luigi.');
    expect(await mailsIn(servers, eve)).toEqual([]);
    expect(await mailsIn(servers, AGENT)).toHaveLength(2);
  });

  it('is answered to nobody else where nothing proves its sender', async () => {
    const [anna, bob] = [somebody(), somebody()];
    const channel = await start({ allowFrom: [anna, bob], replyAll: 'trusted' });
    const mail = { from: anna, cc: bob, subject: 'Lunch', text: 'Where?', isSigned: false };
    await sendAsPerson(servers, mail);
    await host.until(() => host.texts().length === 1, WAIT_MS);
    await channel.send(answerTo(firstOf(host), 'At Luigi.'), sending());
    expect(await mailsIn(servers, bob)).toEqual([]);
  });

  it('keeps the answer although a copy is refused, and tells the owner', async () => {
    const [anna, gone] = [somebody(), 'gone-cc@person.test'];
    const channel = await start({ allowFrom: [anna, gone], replyAll: 'trusted' });
    await sendAsPerson(servers, { from: anna, cc: gone, subject: 'Lunch', text: 'Where?' });
    await host.until(() => host.texts().length === 1, WAIT_MS);
    await channel.send(answerTo(firstOf(host), 'At Luigi.'), sending());
    expect((await mailsIn(servers, anna)).join()).toContain('At Luigi.');
    expect(host.alerts).toEqual([`The copy of an answer for ${gone} was not sent.`]);
  });

  it('knows a report of Postfix itself about a mail it took and could not deliver', async () => {
    const channel = await start({});
    const lost = looseMessage('anna@lost.test', '0123456789abcdef', 'Are you there?');
    await channel.send(lost, sending());
    await host.until(() => host.alerts.length === 1, WAIT_MS);
    expect(host.alerts[0]).toMatch(
      /^An answer to anna@lost\.test could not be delivered: 5\.\d\.\d/,
    );
    expect([...host.bounces.keys()]).toEqual([lost.id]);
    expect(host.texts()).toEqual([]);
  });

  it('can be looked up by the owner alone, and nothing in the mailbox changes', async () => {
    const [anna, bob] = [somebody(), somebody()];
    const channel = await start({ allowFrom: [anna] });
    for (const [from, subject, text] of [
      [anna, 'Rent of the flat', 'It is 900 from May on.'],
      [bob, 'Grüße aus Köln', 'The flat is nice.\u202E'],
      [bob, 'Newsletter', 'Buy!'],
    ] as const) {
      await sendAsPerson(servers, { from: `Somebody <${from}>`, subject, text, isSigned: false });
      // What lies in the queue together arrives in any order.
      await servers.settle();
    }
    const { inbox } = channel;
    if (inbox === undefined) throw new Error('the channel has no inbox');
    const { context } = await createWorkspace();
    const tool = createCheckInbox({
      inboxes: () => [{ name: 'email', find: inbox.find, read: inbox.read }],
      timeZone: () => 'UTC',
    });
    const run = (input: object, more = {}) =>
      tool.run(tool.input.parse(input), { ...context, clock: systemClock, ...more });
    const newest = await run({ count: 3, unread: true });
    expect(newest.match(/^- .*$/gm)).toEqual([
      '- Newsletter',
      '- Grüße aus Köln',
      '- Rent of the flat',
    ]);
    expect(newest).toContain(`from Somebody <${bob}>, unread`);
    const found = await run({ query: 'flat 900' });
    expect(found).toMatch(/^- Rent of the flat\n.*\n {2}id: (\S+)$/);
    const [, id = ''] = /id: (\S+)/.exec(found) ?? [];
    expect(await run({ id })).toMatch(/Subject: Rent of the flat[\s\S]*It is 900 from May on\./);
    expect(await run({ query: 'flat 900', unread: true })).toBe(found);
    expect(await run({ query: 'nowhere in it' })).toBe('Nothing was found.');
    await expect(run({ id: 'email/1.999999' })).rejects.toThrow(/no longer there/);
    await expect(run({ mailbox: 'work' })).rejects.toThrow(/there are: email/);
    await expect(run({}, { person: { notes: 'people/eve/' } })).rejects.toThrow(
      /only to the owner/,
    );
  });
});

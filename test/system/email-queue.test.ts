// One mail that cannot be read, or whose sender cannot be checked now, and a server that comes and goes:
// the other mails of the mailbox are handled meanwhile, against a real Dovecot and Postfix.

import { chmod, chown, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { describeWithMail, type MailServers, startMailServers } from '../support/mail-servers.ts';
import {
  createLeapingClock,
  emailConfig,
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
const HOUR_MS = 3_600_000;

let people = 0;
const somebody = () => `carla${people++}@person.test`;

describeWithMail('the mails of a mailbox', () => {
  let servers: MailServers;
  let host: MemoryHost;
  let clock: ReturnType<typeof createLeapingClock>;
  let running: RunningChannel | undefined;

  const start = async (lookup = testLookup, allowFrom: readonly string[] = ['*']) => {
    clock = createLeapingClock();
    host = createMemoryHost(clock);
    await resume(lookup, allowFrom);
  };
  const resume = async (lookup = testLookup, allowFrom: readonly string[] = ['*']) => {
    const config = emailConfig(servers, { allowFrom: [...allowFrom] });
    const trust = { certificateAuthority: servers.certificate };
    running = await startChannel(host, config, { lookup, ...trust });
  };
  /** While the channel is stopped: the server numbers the mails in the order of the calls. */
  const noticed = () => withMailbox(servers, AGENT, 'INBOX', async () => undefined);
  const lastLines = () => host.texts().map((text) => text.split('\n').at(-1));
  const deferred = () => host.state.list('later/');

  /** Puts a file into the mailbox, as a mail that was not delivered by the server. */
  const put = async (name: string, text: string, mode = 0o600) => {
    const folder = join(servers.maildir(AGENT), 'new');
    const path = join(folder, name);
    const { uid, gid } = await stat(folder);
    await writeFile(path, text);
    await chown(path, uid, gid);
    await chmod(path, mode);
  };
  /** Wherever the server has moved it. */
  const mend = async (name: string) => {
    const files = await readdir(servers.maildir(AGENT), { recursive: true });
    const file = files.find((path) => path.includes(name)) ?? '';
    await chmod(join(servers.maildir(AGENT), file), 0o600);
  };

  beforeAll(async () => {
    servers = await startMailServers();
    // Makes the folders.
    await sendAsPerson(servers, { from: somebody(), subject: 'first', text: 'first' });
    await servers.settle();
  });
  afterAll(async () => {
    await servers?.[Symbol.asyncDispose]();
  });
  afterEach(async () => {
    await running?.stop();
    running = undefined;
  });

  it('go on behind an empty one and one that the server cannot read', async () => {
    await start();
    await running?.stop();
    await put('1000000001.M1P1.host', '');
    const mail = `From: ${somebody()}\r\nTo: ${AGENT}\r\nMessage-ID: <hidden@b.test>\r\n\r\nback again\r\n`;
    await put('1000000002.M2P2.host', mail, 0o000);
    await noticed();
    await sendAsPerson(servers, { from: somebody(), subject: 'behind', text: 'I am behind' });
    await servers.settle();
    await resume();
    await host.until(() => lastLines().includes('I am behind'), WAIT_MS);
    expect(host.gates()).toEqual(['empty mail']);
    expect(host.alerts).toEqual([expect.stringContaining('empty mail (0 bytes)')]);

    for (const told of [1, 1, 2, 2]) {
      const tries = async () => JSON.parse((await deferred())[0]?.value ?? '{}').tries;
      const before = await tries();
      clock.leap(HOUR_MS);
      await expect.poll(tries, { timeout: 30_000 }).toBeGreaterThan(before);
      expect(host.alerts).toHaveLength(told);
    }
    expect(host.alerts).toHaveLength(2);
    expect(host.alerts[1]).toContain('cannot be read');

    await sendAsPerson(servers, { from: somebody(), subject: 'later', text: 'I am later' });
    await host.until(() => lastLines().includes('I am later'), WAIT_MS);
    await mend('M2P2');
    clock.leap(HOUR_MS);
    await host.until(() => lastLines().includes('back again'), WAIT_MS);
    await expect.poll(deferred, { timeout: 30_000 }).toEqual([]);
    expect(host.duplicates).toBe(0);
  });

  it('are listed for the agent around one that the server cannot read', async () => {
    await start();
    await sendAsPerson(servers, { from: somebody(), subject: 'listed', text: 'before' });
    await servers.settle();
    await put('1000000003.M4P4.host', 'From: a@b.test\r\n\r\nx', 0o000);
    const question = { words: [], isUnreadOnly: false, count: 5 };
    const signal = AbortSignal.timeout(WAIT_MS);
    const listed = await running?.channel.inbox?.find(question, signal);
    expect(listed?.map(({ subject }) => subject)).toContain('listed');
    await mend('M4P4');
  });

  it('go on beside rows of the state that are damaged', async () => {
    await start();
    await running?.stop();
    for (const key of ['copy/1', 'reply/1', 'bounce/1', 'later/1/1']) {
      await host.state.set(key, '{"damaged');
    }
    await resume();
    await sendAsPerson(servers, { from: somebody(), subject: 'damaged', text: 'beside them' });
    await host.until(() => lastLines().includes('beside them'), WAIT_MS);
    expect(host.statuses.filter(({ kind }) => kind === 'degraded')).toEqual([]);
  });

  it('go on behind many that the server cannot read', async () => {
    await start();
    await running?.stop();
    for (let n = 0; n < 8; n += 1) await put(`100000010${n}.M3P${n}.host`, 'From: a@b.test', 0o000);
    await noticed();
    await sendAsPerson(servers, { from: somebody(), subject: 'behind 8', text: 'behind eight' });
    await servers.settle();
    await resume();
    await host.until(() => lastLines().includes('behind eight'), WAIT_MS);
    expect(await deferred()).toHaveLength(8);
  });

  it('wait for the name service without holding up the others, and are proven later', async () => {
    let isDown = true;
    const waiting = somebody();
    await start(
      async (domain, type) => {
        if (!isDown) return testLookup(domain, type);
        throw Object.assign(new Error('no answer'), { code: 'ETIMEOUT' });
      },
      [waiting],
    );
    await sendAsPerson(servers, { from: waiting, subject: 'signed', text: 'proven later' });
    await expect.poll(deferred, { timeout: 30_000 }).toHaveLength(1);
    const unsigned = { from: waiting, subject: 'unsigned', text: 'unsigned', isSigned: false };
    await sendAsPerson(servers, unsigned);
    await host.until(() => lastLines().includes('unsigned'), WAIT_MS);
    for (let n = 0; n < 5; n += 1) clock.leap(HOUR_MS);
    isDown = false;
    clock.leap(HOUR_MS);
    await host.until(() => lastLines().includes('proven later'), WAIT_MS);
    const levels = queued(host).map(({ sender }) => sender.kind === 'person' && sender.verified);
    expect(levels).toEqual(['unverified', 'verified']);
    await expect.poll(deferred).toEqual([]);
  });

  it('are read soon after each of many interruptions', async () => {
    await start();
    for (let n = 0; n < 6; n += 1) {
      const isBack = servers.restartImap();
      clock.hold(isBack);
      await isBack;
      await sendAsPerson(servers, { from: somebody(), subject: `${n}`, text: `after ${n}` });
      await host.until(() => lastLines().includes(`after ${n}`), WAIT_MS);
    }
    const waits = host.logged
      .filter(({ message }) => message === 'task failed')
      .map(({ fields }) => Number(fields['waitMs']));
    expect(waits.length).toBeGreaterThanOrEqual(6);
    // A server that is still starting may refuse once or twice.
    expect(Math.max(...waits)).toBeLessThanOrEqual(20_000);
    expect(waits.filter((wait) => wait <= 5_000).length).toBeGreaterThanOrEqual(6);
  });
});

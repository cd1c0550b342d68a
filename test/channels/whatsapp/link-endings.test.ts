// How connections end, and what follows: against the WhatsApp server.

import { describe, expect, it } from 'vitest';
import { readLinkHealth, reconnectsOfLastDay } from '../../../src/channels/whatsapp/link-status.ts';
import type { Ending } from '../../support/whatsapp-server/contract.ts';
import { trustedWhatsAppServer } from '../../support/whatsapp-server/trusted.ts';
import { createLinkBench, type LinkBench } from './link-bench.ts';

const server = await trustedWhatsAppServer();

const HOUR_MS = 3_600_000;

/** The connection is over and the link said what it made of it. */
const settled = (bench: LinkBench) =>
  bench.host.until(({ statuses }) => {
    const last = statuses.at(-1);
    if (last?.kind === 'stopped') return last;
    return last?.kind === 'degraded' && last.retryAt !== undefined ? last : undefined;
  });

async function endedWhileOpen(bench: LinkBench, ending: Ending) {
  await bench.linked();
  await bench.phone.end(ending);
}

async function endedWhileOpening(bench: LinkBench, ending: Ending) {
  await bench.linked();
  await bench.stop();
  await bench.phone.end(ending, 'opening');
  await bench.restart();
}

const phases = [
  ['open', endedWhileOpen],
  ['opening', endedWhileOpening],
] as const;

describe.each(phases)('an ending in the %s phase', (_, end) => {
  it.each([
    ['a closed connection', { kind: 'close' }, 'lost'],
    ['a dropped connection', { kind: 'drop' }, 'lost'],
    ['the end of the stream', { kind: 'stream_end' }, 'lost'],
    ['code 503', { kind: 'stream_error', code: 503 }, 'not available'],
    ['code 500', { kind: 'stream_error', code: 500 }, 'unknown reason (500)'],
    ['failure 503', { kind: 'failure', reason: 503 }, 'not available'],
    ['failure 400', { kind: 'failure', reason: 400 }, 'handshake'],
  ] as const)(
    'by %s is followed by another connection after a while',
    async (_name, ending, words) => {
      await using bench = await createLinkBench(server);
      await end(bench, ending);
      const status = await settled(bench);
      expect(status).toMatchObject({ kind: 'degraded', reason: expect.stringContaining(words) });
      const { logins } = bench.phone.counts;
      await bench.clock.advance(1900);
      expect(bench.phone.counts.logins).toBe(logins);
      await bench.retry();
      await bench.phone.online();
      expect(bench.phone.counts.atOnce).toBe(1);
      expect(bench.vault.account?.number).toBe(bench.phone.number);
    },
  );

  it('by 515 is followed by another connection at once', async () => {
    await using bench = await createLinkBench(server);
    await end(bench, { kind: 'stream_error', code: 515 });
    await bench.host.until(({ statuses }) => statuses.at(-1)?.kind === 'running');
    await bench.phone.online();
    expect(bench.host.statuses.filter((s) => s.kind === 'degraded' && s.retryAt)).toEqual([]);
  });

  it.each([
    ['conflict', { kind: 'conflict' }, '440', 'took over'],
    ['failure 403', { kind: 'failure', reason: 403 }, '403', 'refuses this account'],
    ['code 403', { kind: 'stream_error', code: 403 }, '403', 'refuses this account'],
    ['failure 405', { kind: 'failure', reason: 405 }, '405', 'version'],
  ] as const)(
    'by %s stops, tells the owner once, and keeps the account',
    async (_name, ending, code, words) => {
      await using bench = await createLinkBench(server);
      await end(bench, ending);
      const status = await settled(bench);
      expect(status).toMatchObject({ kind: 'stopped', reason: expect.stringContaining(words) });
      const { logins } = bench.phone.counts;
      await bench.clock.advance(24 * HOUR_MS);
      expect(bench.phone.counts.logins).toBe(logins);
      expect(bench.host.alerts).toHaveLength(1);
      expect(bench.host.alerts[0]).toContain(code);
      expect(bench.host.alerts[0]).toContain('nanobot');
      expect(bench.vault.account?.number).toBe(bench.phone.number);
    },
  );

  it('by 401 sets the credentials aside, tells the owner once and waits for a new link', async () => {
    await using bench = await createLinkBench(server);
    await end(bench, { kind: 'failure', reason: 401 });
    await bench.host.until(({ alerts }) => alerts.length > 0);
    expect(await settled(bench)).toMatchObject({
      kind: 'stopped',
      reason: expect.stringContaining('logged this device out'),
      remedy: expect.stringContaining('nanobot channels login whatsapp'),
    });
    expect(bench.vault.account).toBeUndefined();
    expect(await bench.rows('creds/')).toEqual([]);
    expect((await bench.rows('old/')).some((key) => key.includes('creds/'))).toBe(true);
    const { logins } = bench.phone.counts;
    await bench.clock.advance(HOUR_MS);
    expect(bench.phone.counts.logins).toBe(logins);
    expect(bench.host.alerts).toHaveLength(1);
  });
});

describe('an account that was stopped', () => {
  it('stays quiet after it was replaced until somebody logs in, who needs no phone', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    await bench.phone.end({ kind: 'conflict' });
    await settled(bench);
    const login = bench.begin();
    expect(await login.end).toEqual({ kind: 'done', account: `+${bench.phone.number}` });
    expect(login.steps.some(({ kind }) => kind === 'show_qr')).toBe(false);
    await bench.phone.online();
    expect(bench.phone.counts.registrations).toBe(1);
  });

  it('resumes when the channel is started again', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    await bench.phone.end({ kind: 'conflict' });
    await settled(bench);
    await bench.restart();
    await bench.phone.online();
  });

  it('says after a restart too that it was logged out, until it is linked anew', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    await bench.phone.unlink();
    await bench.host.until(({ alerts }) => alerts.length > 0);
    await settled(bench);
    for (let restarts = 0; restarts < 2; restarts += 1) {
      const told = bench.host.statuses.length;
      await bench.restart();
      const status = await bench.host.until(({ statuses }) =>
        statuses.slice(told).find(({ kind }) => kind === 'stopped'),
      );
      expect(status).toMatchObject({
        reason: expect.stringContaining('logged this device out'),
        remedy: expect.stringContaining('nanobot channels login whatsapp'),
      });
    }
    expect(bench.host.alerts).toHaveLength(1);
    await bench.linked();
    expect(bench.host.statuses.at(-1)?.kind).toBe('running');
  });

  it('says that it is not linked where it never was', async () => {
    await using bench = await createLinkBench(server);
    const status = await bench.host.until(({ statuses }) =>
      statuses.find(({ kind }) => kind === 'stopped'),
    );
    expect(status).toMatchObject({ reason: 'not linked' });
  });

  it('is linked anew in one command after it was logged out', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    await bench.phone.unlink();
    await bench.host.until(({ alerts }) => alerts.length > 0);
    await bench.linked();
    expect(bench.phone.counts.registrations).toBe(2);
  });

  it('is linked anew in one command when the logout shows only then', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    await bench.phone.end({ kind: 'conflict' });
    await settled(bench);
    await bench.phone.unlink();
    const login = bench.begin();
    await bench.phone.scan((await login.step('show_qr')).qr);
    expect(await login.end).toEqual({ kind: 'done', account: `+${bench.phone.number}` });
    expect(login.steps).toContainEqual({
      kind: 'progress',
      text: expect.stringContaining('Linking again'),
    });
  });

  it('is connected at once when somebody logs in while it waits', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    await bench.phone.end({ kind: 'stream_error', code: 503 });
    await settled(bench);
    expect(await bench.begin().end).toMatchObject({ kind: 'done' });
  });

  it('ends the login with the reason when it is refused again', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    bench.phone.refuseLogins({ kind: 'failure', reason: 403 });
    await bench.phone.end({ kind: 'failure', reason: 403 });
    await settled(bench);
    expect(await bench.begin().end).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('refuses this account'),
    });
    expect(bench.host.alerts).toHaveLength(1);
  });
});

describe('many connections', () => {
  it('follow one another 50 times, never two at once, and leave nothing behind', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    const events = ['exit', 'uncaughtException', 'unhandledRejection', 'warning'];
    const listeners = () => events.map((event) => process.listenerCount(event));
    await bench.quiet(60_000);
    const before = { listeners: listeners(), timers: bench.clock.pending };
    for (let count = 0; count < 50; count += 1) {
      await bench.phone.end({ kind: count % 2 === 0 ? 'close' : 'drop' });
      await settled(bench);
      expect(bench.sockets.attached).toBe(0);
      await bench.retry();
      await bench.phone.online();
      await bench.host.until(({ statuses }) => statuses.at(-1)?.kind === 'running');
    }
    await bench.quiet(60_000);
    expect({ listeners: listeners(), timers: bench.clock.pending }).toEqual(before);
    for (const { ws } of bench.sockets.all.slice(0, -1)) {
      expect([ws.eventNames(), ws.listenerCount('error')]).toEqual([['error'], 1]);
    }
    expect(bench.phone.counts.atOnce).toBe(1);
    expect(bench.sockets.attached).toBe(1);
  });

  it('come less and less often while they do not last, and quickly again after a good minute', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    const waits: number[] = [];
    const flap = async () => {
      await bench.quiet(5000);
      await bench.phone.end({ kind: 'drop' });
      const status = await settled(bench);
      if (status.kind === 'degraded') waits.push((status.retryAt ?? 0) - bench.clock.now());
      await bench.retry();
      await bench.phone.online();
      await bench.host.until(({ statuses }) => statuses.at(-1)?.kind === 'running');
    };
    for (let count = 0; count < 10; count += 1) await flap();
    expect(waits).toEqual([2, 4, 8, 16, 32, 64, 128, 150, 150, 150].map((secs) => secs * 1000));
    await bench.quiet(60_000);
    await flap();
    expect(waits.at(-1)).toBe(2000);
  });

  it('come quickly again where each of them brought a message', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    const ben = await server.contact(bench.phone);
    for (let count = 0; count < 5; count += 1) {
      await ben.writes(`hello ${count}`);
      await bench.takenIn();
      await bench.phone.end({ kind: 'drop' });
      const status = await settled(bench);
      const waitMs = status.kind === 'degraded' ? (status.retryAt ?? 0) - bench.clock.now() : 0;
      expect(waitMs).toBe(2000);
      await bench.retry();
      await bench.phone.online();
      await bench.host.until(({ statuses }) => statuses.at(-1)?.kind === 'running');
    }
  });

  it('asked for by 515 again and again wait as well', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    await bench.quiet(11 * 60_000);
    bench.phone.refuseLogins({ kind: 'stream_error', code: 515 });
    await bench.phone.end({ kind: 'stream_error', code: 515 });
    const { made } = bench.sockets;
    await settled(bench);
    expect(bench.sockets.made).toBe(made + 1);
  });

  it('tell the owner once when the same unknown trouble goes on', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    bench.phone.refuseLogins({ kind: 'stream_error', code: 500 });
    await bench.phone.end({ kind: 'stream_error', code: 500 });
    for (let count = 0; count < 8; count += 1) {
      const seen = bench.host.statuses.length;
      await settled(bench);
      await bench.retry();
      await bench.host.until(({ statuses }) => statuses.length > seen);
    }
    expect(bench.host.alerts).toEqual([expect.stringContaining('unknown reason (500)')]);
    expect(bench.vault.account?.number).toBe(bench.phone.number);
  });
});

describe('bad credentials', () => {
  it('that never opened give way to the last good ones, once', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    await bench.quiet(1000);
    const { creds } = bench.vault.auth;
    const { noiseKey } = creds;
    Object.assign(creds, { noiseKey: creds.signedIdentityKey });
    await bench.vault.save();
    await bench.restart();
    await bench.phone.online();
    expect(bench.vault.auth.creds.noiseKey).toEqual(noiseKey);
    expect(bench.vault.account?.number).toBe(bench.phone.number);
    expect(bench.host.alerts).toEqual([]);
    expect(bench.host.logged).toContainEqual(
      expect.objectContaining({ message: 'whatsapp credentials rolled back' }),
    );
  });
});

describe('the health row', () => {
  it('tells who is linked, since when, and how the last connection ended', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    const openedAt = bench.clock.now();
    await bench.quiet(60_000);
    await bench.phone.end({ kind: 'drop' });
    await settled(bench);
    await bench.stop();
    const health = await readLinkHealth(bench.host.state);
    expect(health).toMatchObject({
      status: 'degraded',
      linkedNumber: bench.phone.number,
      openedAt,
      lastEnding: { code: 428, reason: 'the connection to WhatsApp was lost' },
      undecryptable: 0,
    });
    if (health === undefined) throw new Error('no health');
    expect(reconnectsOfLastDay(health, bench.clock.now())).toBe(1);
    expect(reconnectsOfLastDay(health, bench.clock.now() + 25 * HOUR_MS)).toBe(0);
  });
});

// What the link notices by itself: silence, messages that get stuck, a missing marker, a server that
// does not even close; against the WhatsApp server and one that says nothing.

import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { readLinkHealth } from '../../../src/channels/whatsapp/link-status.ts';
import { portOf } from '../../support/listening.ts';
import { createSelfSigned } from '../../support/whatsapp-server/self-signed.ts';
import { trustedWhatsAppServer } from '../../support/whatsapp-server/trusted.ts';
import { createLinkBench, type LinkBench } from './link-bench.ts';

const server = await trustedWhatsAppServer();

const degraded = (bench: LinkBench, words: string) =>
  bench.host.until(({ statuses }) => {
    const last = statuses.at(-1);
    return last?.kind === 'degraded' && last.reason.includes(words) && last.retryAt !== undefined;
  });

describe('an open connection', () => {
  it('is replaced when nothing comes any more', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    await bench.phone.end({ kind: 'silence' });
    await bench.clock.advance(80_000);
    expect(bench.link.socket).toBeDefined();
    await bench.clock.advance(15_000);
    await degraded(bench, 'sent nothing for too long');
    expect(bench.link.socket).toBeUndefined();
    await bench.retry();
    await bench.phone.online();
    expect(bench.phone.counts.atOnce).toBe(1);
  });

  it('stays through a quiet day', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    await bench.quiet(2 * 3_600_000);
    expect(bench.sockets.made).toBe(2);
    expect(bench.host.statuses.at(-1)).toMatchObject({
      kind: 'running',
      activeAt: bench.clock.now(),
    });
  });

  it('shows why nothing comes through as long as that lasts, whatever else arrives', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    const trouble = { reason: 'the queue is full', retryAt: bench.clock.now() + 30_000 };
    bench.link.noteTrouble(trouble);
    await bench.quiet(60_000);
    expect(bench.host.statuses.at(-1)).toEqual({ kind: 'degraded', ...trouble });
    bench.link.noteTrouble(undefined);
    expect(bench.host.statuses.at(-1)?.kind).toBe('running');
  });

  it('is replaced when messages come that reach nobody', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    bench.stalledSince = bench.clock.monotonic();
    await bench.quiet(50_000);
    expect(bench.link.socket).toBeDefined();
    await bench.quiet(15_000);
    await degraded(bench, 'could not be stored');
    bench.stalledSince = undefined;
    await bench.retry();
    await bench.phone.online();
  });

  it('says at most once a second that it is alive', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    const reports = bench.host.statuses.length;
    for (let count = 0; count < 10; count += 1) await bench.answered();
    expect(bench.host.statuses.length).toBe(reports);
    await bench.clock.advance(1000);
    await bench.answered();
    expect(bench.host.statuses.length).toBe(reports + 1);
  });

  it('ends queries under way when it ends, instead of letting them wait for their own deadline', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    server.fault({ direction: 'up', stanza: 'iq w:p', effect: { kind: 'drop' } });
    const answered = bench.answered();
    const ended = expect(answered).rejects.toMatchObject({ code: 'whatsapp_closed' });
    await bench.phone.end({ kind: 'stream_error', code: 503 });
    await ended;
  });
});

describe('a login', () => {
  it('that is never answered is given up and tried again', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    await bench.stop();
    bench.phone.refuseLogins({ kind: 'silence' });
    await bench.restart();
    await bench.host.until(({ statuses }) => statuses.at(-1)?.kind === 'starting');
    await bench.clock.advance(95_000);
    await degraded(bench, 'WhatsApp');
    bench.phone.refuseLogins(undefined);
    await bench.retry();
    await bench.phone.online();
  });
});

describe('messages from before', () => {
  it('are awaited until the server says that all came', async () => {
    await using bench = await createLinkBench(server);
    const login = bench.begin();
    await bench.phone.scan((await login.step('show_qr')).qr);
    await login.step('done');
    await bench.link.caughtUp(AbortSignal.timeout(45_000));
    expect(bench.link.isCatchingUp).toBe(false);
  });

  it('are awaited for 35 seconds where the server never says so', async () => {
    await using bench = await createLinkBench(server);
    bench.phone.withholdsOfflineMarker(true);
    await bench.linked();
    let isOver = false;
    const over = bench.link.caughtUp(AbortSignal.timeout(45_000)).then(() => {
      isOver = true;
    });
    await bench.clock.advance(34_000);
    expect(bench.link.isCatchingUp).toBe(true);
    expect(isOver).toBe(false);
    await bench.clock.advance(2000);
    await over;
    expect(bench.link.isCatchingUp).toBe(false);
    expect(bench.link.socket).toBeDefined();
  });

  it('are awaited no longer when the connection ends', async () => {
    await using bench = await createLinkBench(server);
    bench.phone.withholdsOfflineMarker(true);
    await bench.linked();
    expect(bench.link.isCatchingUp).toBe(true);
    await bench.phone.end({ kind: 'drop' });
    await bench.link.caughtUp(AbortSignal.timeout(45_000));
  });
});

describe('who waits for the connection', () => {
  it('gets it when it opens', async () => {
    await using bench = await createLinkBench(server);
    const socket = bench.link.open(AbortSignal.timeout(45_000));
    await bench.linked();
    expect(await socket).toBe(bench.link.socket);
  });

  it('is let go when there is no more time', async () => {
    await using bench = await createLinkBench(server);
    const controller = new AbortController();
    const socket = bench.link.open(controller.signal);
    controller.abort(new Error('no more time'));
    await expect(socket).rejects.toThrow('no more time');
  });
});

describe('messages that cannot be read', () => {
  it('are counted for doctor', async () => {
    await using bench = await createLinkBench(server);
    await bench.linked();
    const contact = await server.contact(bench.phone);
    server.fault({ direction: 'down', stanza: 'message', effect: { kind: 'corrupt' } });
    await contact.writes('hello');
    await bench.takenIn();
    await bench.stop();
    expect((await readLinkHealth(bench.host.state))?.undecryptable).toBeGreaterThan(0);
  });
});

describe('a server that answers nothing at all', () => {
  it('cannot keep the channel from stopping', async () => {
    const mute = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await new Promise((resolve) => mute.once('listening', resolve));
    const connected = new Promise<void>((resolve) => {
      mute.on('connection', (_socket, request) => {
        request.socket.pause();
        resolve();
      });
    });
    const { port } = mute.address() as AddressInfo;
    const bench = await createLinkBench(server, { socketUrl: `ws://127.0.0.1:${port}/` });
    const login = bench.begin();
    await connected;
    const stopped = bench.stop();
    await bench.clock.advance(5000);
    await stopped;
    expect(await login.end).toMatchObject({ kind: 'failed', reason: 'the channel stopped' });
    expect(bench.clock.pending).toBe(0);
    for (const client of mute.clients) client.terminate();
    await new Promise((resolve) => mute.close(resolve));
  });
});

describe('an address that is not allowed', () => {
  it.each(['ws://web.whatsapp.com/ws/chat', 'http://127.0.0.1/', 'nonsense'])(
    '%s is never connected to',
    async (socketUrl) => {
      const bench = await createLinkBench(server, { socketUrl });
      await expect(bench.stop()).rejects.toMatchObject({
        code: 'whatsapp_settings',
        remedy: { kind: 'never' },
      });
      expect(bench.sockets.made).toBe(0);
      expect(bench.host.statuses.at(-1)).toMatchObject({ kind: 'stopped' });
    },
  );
});

describe('a server whose certificate nobody vouches for', () => {
  it('is never talked to, even where the environment says that checks are off', async () => {
    const tls = createServer(createSelfSigned());
    const upgrades: string[] = [];
    tls.on('upgrade', (request) => void upgrades.push(request.url ?? ''));
    const port = await portOf(tls);
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    await using bench = await createLinkBench(server, { socketUrl: `wss://127.0.0.1:${port}/` });
    const login = bench.begin();
    await login.first((s) => s.kind === 'progress' && s.text.includes('cannot be reached'));
    delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    expect(upgrades).toEqual([]);
    await new Promise((resolve) => tls.close(resolve));
  });
});

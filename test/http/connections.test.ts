import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { MAX_UNPROVEN_PER_CLIENT } from '../../src/http/authentication.ts';
import { HttpServerError } from '../../src/http/server.ts';
import { openSocket, startHttp } from './http-rig.ts';

const closed = (sockets: readonly Socket[]) => sockets.filter((socket) => socket.closed).length;

describe('connections that say nothing', () => {
  it('hold no more than their places, and keep nobody out', async () => {
    await using rig = await startHttp();
    const sockets: Socket[] = [];
    const wanted = MAX_UNPROVEN_PER_CLIENT + 192;
    const evicted = Promise.withResolvers<void>();
    for (let index = 0; index < wanted; index += 1) {
      const socket = await openSocket(rig.port);
      sockets.push(socket);
      socket.on('close', () => {
        if (closed(sockets) >= wanted - MAX_UNPROVEN_PER_CLIENT) evicted.resolve();
      });
      // Half a request line, as a slow attacker would drip it.
      socket.write('GET /healthz HT');
    }
    await evicted.promise;
    expect((await rig.ask('/healthz')).status).toBe(200);
    for (const socket of sockets) socket.destroy();
  });

  it('do not include those that asked for something', async () => {
    await using rig = await startHttp();
    const following = await fetch(`${rig.address}/api/web/chats/a/events`, {
      headers: rig.credentials,
    });
    const sockets: Socket[] = [];
    for (let index = 0; index < MAX_UNPROVEN_PER_CLIENT + 5; index += 1) {
      sockets.push(await openSocket(rig.port));
    }
    const first = sockets[0];
    if (first !== undefined && !first.closed) await once(first, 'close');
    await rig.post('/api/web/chats/a/messages', { clientId: 'c', text: 'still there' });
    const reader = following.body?.getReader();
    let heard = '';
    while (!heard.includes('still there')) {
      heard += new TextDecoder().decode((await reader?.read())?.value);
    }
    for (const socket of sockets) socket.destroy();
    await reader?.cancel();
  });

  it('are not waited for after a refusal: the rest of a refused body is never read', async () => {
    await using rig = await startHttp({ token: 'a-long-and-random-token' });
    const socket = await openSocket(rig.port);
    socket.write(
      'POST /api/web/chats/a/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n' +
        'Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"text":"',
    );
    const [answer] = await once(socket, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1\.1 401 /);
    expect(String(answer).toLowerCase()).toContain('connection: close');
    if (!socket.closed) await once(socket.resume(), 'close');
  });
});

describe('an address that cannot be had', () => {
  it('is named together with what to do', async () => {
    await using taken = await startHttp();
    const second = startHttp({ port: taken.port });
    await expect(second).rejects.toThrow(HttpServerError);
    await expect(second).rejects.toThrow(`127.0.0.1:${taken.port} is taken`);
  });
});

// Answers of a model server or a platform with very many or very large headers: a client takes a bounded
// part of them and gives the answer up, and what it reads without such a bound costs no more than its size.

import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { botInfo, createLarkApi } from '../../src/channels/lark/api.ts';
import { createBotLink } from '../../src/channels/telegram/client.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { ask, collect, NO_RETRIES, simulated } from '../providers/provider-setup.ts';
import { cpuMs, growthOf, PROPORTIONAL } from '../support/cpu-time.ts';
import { portOf } from '../support/listening.ts';

/** What a client may read in all, with all buffers of the system on the way. */
const MAX_TAKEN_BYTES = 16_000_000;
const DEADLINE_MS = 60_000;
/** What ends before the deadline says otherwise. */
const NOT_GIVEN_UP = /^(?!.*(?:given up|cancelled))/;
const PIECE_BYTES = 65_536;
const WHOLE_BYTES = 64_000_000;
/** Made four times as large. */
const FIRST_BYTES = 4_000_000;

/** What comes behind the beginning of an answer again and again. */
type Piece = { readonly head: string; readonly piece: string };

const OK = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n1`;
const ENDLESS: Readonly<Record<string, Piece>> = {
  'many short headers': { head: OK, piece: 'a: b\r\n' },
  'many headers of one name': { head: OK, piece: 'set-cookie: a=b\r\n' },
  'one long header': { head: `${OK}x: `, piece: 'y' },
  'one long name of a header': { head: OK, piece: 'x' },
  'many headers behind the answer': { head: `${CHUNKED}\r\n{\r\n0\r\n`, piece: 'a: b\r\n' },
};
const LONG: Readonly<Record<string, Piece>> = {
  'a long status line': { head: 'HTTP/1.1 200 ', piece: 'O' },
  'many announcements before the answer': {
    head: '',
    piece: 'HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n',
  },
  'a long extension of a chunk': { head: `${CHUNKED};a=`, piece: 'b' },
};

interface Flood extends AsyncDisposable {
  readonly url: string;
  /** By the client, or on the way to it. */
  readonly takenBytes: number;
}

/** Answers each request with so many bytes, as far as they are taken, and closes. */
async function startFlood({ head, piece }: Piece, bytes: number): Promise<Flood> {
  const pieces = piece.repeat(Math.ceil(PIECE_BYTES / piece.length));
  const sockets = new Set<Socket>();
  let taken = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    let left = bytes;
    const more = () => {
      if (socket.destroyed) return;
      if (left <= 0) return void socket.end();
      left -= pieces.length;
      socket.write(pieces, 'latin1', (error) => {
        if (error) return;
        taken += pieces.length;
        more();
      });
    };
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write(head, 'latin1', more));
  });
  const port = await portOf(server);
  return {
    url: `http://127.0.0.1:${port}`,
    get takenBytes() {
      return taken;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

const providersAt = (url: string) => ({
  openai: { apiKey: 'sk-headers-of-a-test', apiBase: `${url}/v1` },
  anthropic: { apiKey: 'sk-headers-of-a-test', apiBase: url },
  ollama: { apiBase: `${url}/v1` },
});
const modelCall = (model: string) => (url: string, signal: AbortSignal) => {
  const config = { ...NO_RETRIES, providers: providersAt(url) };
  const server = { openaiBase: `${url}/v1`, url } as never;
  const handle = simulated('openai', server, { config, model });
  return collect(handle.stream(ask('hello'), signal));
};

type Client = (url: string, signal: AbortSignal) => Promise<unknown>;

const CLIENTS: Readonly<Record<string, Client>> = {
  'a model of the OpenAI dialect': modelCall('openai/sim-1'),
  'a model of Anthropic’s dialect': modelCall('anthropic/claude-sonnet-4-5'),
  'a local model': modelCall('ollama/sim-1'),
  Telegram: (apiRoot, signal) =>
    createBotLink({ token: '1:secret', apiRoot, clock: systemClock }).send(
      { chat_id: 700, text: 'hello' },
      { signal },
    ),
  Lark: (root, signal) =>
    botInfo(createLarkApi({ appId: 'cli_1', appSecret: 'secret', root }, systemClock), signal),
};

async function cost(call: Client, what: Piece, bytes: number) {
  await using flood = await startFlood(what, bytes);
  const before = cpuMs();
  await expect(call(flood.url, AbortSignal.timeout(DEADLINE_MS))).rejects.toThrow(NOT_GIVEN_UP);
  return { cpu: cpuMs() - before, takenBytes: flood.takenBytes };
}

describe.each(Object.entries(CLIENTS))('%s', (_client, call) => {
  it.each(Object.entries(ENDLESS))(
    'that sends %s is left after a part of them',
    async (_, what) => {
      expect((await cost(call, what, WHOLE_BYTES)).takenBytes).toBeLessThan(MAX_TAKEN_BYTES);
    },
  );

  it.each(Object.entries(LONG))('that sends %s costs what its size does', async (_, what) => {
    const cpuOf = async (bytes: number) => (await cost(call, what, bytes)).cpu;
    expect(await growthOf(cpuOf, FIRST_BYTES)).toBeLessThan(PROPORTIONAL);
  });
});

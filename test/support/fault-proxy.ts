// A TCP proxy that misbehaves on command, between a client under test and a server. Its mode can be
// changed while connections are open; bytes that a mode withholds are never delivered later.

import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { freePorts } from './free-ports.ts';

export type ProxyMode =
  | { readonly kind: 'pass' }
  /** Nobody listens on the port. */
  | { readonly kind: 'refuse' }
  /** Connections are reset, open ones at once, new ones when they come. */
  | { readonly kind: 'reset' }
  /** Connections are taken and never answered: nothing passes in either direction. */
  | { readonly kind: 'blackhole' }
  /** Each piece passes this much later. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** Requests reach the server, answers never come back. */
  | { readonly kind: 'half_open' }
  /** The connection is reset after so many bytes of answer. */
  | { readonly kind: 'cut'; readonly afterBytes: number }
  /** Answers drip. */
  | { readonly kind: 'trickle'; readonly everyMs: number };

export type FaultProxy = AsyncDisposable & {
  readonly port: number;
  /** Connections taken so far. */
  readonly connections: number;
  set(mode: ProxyMode): Promise<void>;
  /** New connections lead to this port; open ones are reset. */
  lead(port: number): void;
};

export async function startFaultProxy(target: {
  readonly host?: string;
  readonly port: number;
}): Promise<FaultProxy> {
  const relay = new Relay(target.host ?? '127.0.0.1', target.port);
  // A port that nobody gets while the proxy refuses.
  const [port = 0] = await freePorts(1);
  await relay.open(port);
  return relay;
}

type Pair = { readonly client: Socket; readonly server: Socket; answered: number };

class Relay implements FaultProxy {
  readonly #host: string;
  #targetPort: number;
  readonly #pairs = new Set<Pair>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #server: Server | undefined;
  #mode: ProxyMode = { kind: 'pass' };
  port = 0;
  connections = 0;

  constructor(host: string, targetPort: number) {
    this.#host = host;
    this.#targetPort = targetPort;
  }

  async open(port: number): Promise<void> {
    const server = createServer((client) => this.#take(client));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
  }

  async set(mode: ProxyMode): Promise<void> {
    this.#mode = mode;
    if (mode.kind === 'refuse') return this.#closeServer();
    if (mode.kind === 'reset') this.#resetAll();
    if (this.#server === undefined) await this.open(this.port);
  }

  lead(port: number): void {
    this.#targetPort = port;
    this.#resetAll();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#closeServer();
  }

  async #closeServer(): Promise<void> {
    this.#resetAll();
    const server = this.#server;
    this.#server = undefined;
    if (server !== undefined) await new Promise((resolve) => server.close(resolve));
  }

  #resetAll() {
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy();
      server.destroy();
    }
  }

  #take(client: Socket) {
    this.connections += 1;
    client.on('error', () => client.destroy());
    if (this.#mode.kind === 'reset') return void client.resetAndDestroy();
    const server = connect(this.#targetPort, this.#host);
    const pair: Pair = { client, server, answered: 0 };
    this.#pairs.add(pair);
    server.on('error', () => client.resetAndDestroy());
    client.on('close', () => {
      server.destroy();
      this.#pairs.delete(pair);
    });
    server.on('close', () => {
      if (this.#mode.kind === 'pass') client.end();
    });
    client.on('data', (piece: Buffer) => this.#request(pair, piece));
    server.on('data', (piece: Buffer) => this.#answer(pair, piece));
  }

  #request({ server }: Pair, piece: Buffer) {
    const mode = this.#mode;
    if (mode.kind === 'blackhole') return;
    if (mode.kind === 'delay') this.#later(mode.ms, () => write(server, piece));
    else write(server, piece);
  }

  #answer(pair: Pair, piece: Buffer) {
    const mode = this.#mode;
    const { client } = pair;
    if (mode.kind === 'blackhole' || mode.kind === 'half_open') return;
    if (mode.kind === 'delay') return this.#later(mode.ms, () => write(client, piece));
    if (mode.kind === 'trickle') return this.#drip(client, piece, mode.everyMs);
    if (mode.kind !== 'cut') return write(client, piece);
    const left = mode.afterBytes - pair.answered;
    pair.answered += piece.length;
    if (piece.length <= left) return write(client, piece);
    client.write(piece.subarray(0, Math.max(0, left)), () => client.resetAndDestroy());
  }

  #drip(client: Socket, piece: Buffer, everyMs: number) {
    if (piece.length === 0 || client.destroyed) return;
    write(client, piece.subarray(0, 1));
    this.#later(everyMs, () => this.#drip(client, piece.subarray(1), everyMs));
  }

  #later(ms: number, run: () => void) {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      run();
    }, ms);
    this.#timers.add(timer);
  }
}

function write(socket: Socket, piece: Buffer) {
  if (!socket.destroyed) socket.write(piece);
}

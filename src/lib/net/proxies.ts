// Connections through the proxy of a setting: agents, a `fetch`, and a relay for libraries that open
// their own connections. What connects (tunnel.ts) is loaded with the first such connection.

import type { Agent } from 'node:http';
import type { Duplex } from 'node:stream';
import { isAddress, isDirect, type ProxyAddress, ProxyError, readProxy } from './address-rules.ts';

/** The error, or what caused it, if a proxy failed. */
export function proxyErrorIn(error: unknown): ProxyError | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof ProxyError) return at;
  }
  return undefined;
}

/** Makes the agent connect through the proxy of a setting; without one it stays as it is. */
export function routed<A extends Agent>(agent: A, setting: string): A {
  const proxy = readProxy(setting);
  if (proxy === undefined) return agent;
  const direct = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    const host = options.host ?? 'localhost';
    const port = Number(options.port);
    if (isDirect(proxy, host, port)) return direct(options, callback);
    connected(proxy, host, port).then(
      (socket) => {
        // The agent of TLS encrypts over it; the plain one would open a connection of its own.
        const isTls = 'protocol' in agent && agent.protocol === 'https:';
        const secured = isTls ? direct({ ...options, socket } as typeof options) : socket;
        callback?.(null, secured ?? socket);
        // Some libraries hand it over paused.
        socket.resume();
      },
      (error: Error) => callback?.(error, undefined as never),
    );
    return undefined;
  };
  return agent;
}

async function connected(proxy: ProxyAddress, host: string, port: number) {
  const { connectThrough } = await import('./tunnel.ts');
  return connectThrough(proxy, { host, port });
}

/** Calls `made` with each connection of the agent. */
export function watchConnections(agent: Agent, made: (connection: Duplex) => void): void {
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    const now = connect(options, (error, later) => {
      if (later) made(later);
      callback?.(error, later);
    });
    if (now) made(now);
    return now;
  };
}

/** The `fetch` of a setting; without a proxy Node's own. */
export function fetchThrough(setting: string): typeof fetch {
  const proxy = readProxy(setting);
  if (proxy === undefined) return fetch;
  return async (input, init) => {
    const { fetchByTunnel } = await import('./tunnel.ts');
    return fetchByTunnel(proxy, input, init);
  };
}

/** Connects once; false if the setting reaches the server without a proxy. @throws ProxyError */
export async function proveProxy(setting: string, host: string, port: number): Promise<boolean> {
  const proxy = readProxy(setting);
  if (proxy === undefined || isDirect(proxy, host, port)) return false;
  (await connected(proxy, host, port)).destroy();
  return true;
}

/** Where a library that opens its own connections finds the server. */
export type Reach = Disposable & {
  readonly host: string;
  readonly port: number;
  /** The server's name, for its certificate, where `host` is not its host. */
  readonly servername?: string;
};

/** Leads one connection through the proxy of a setting. @throws ProxyError */
export async function reachThrough(setting: string, host: string, port: number): Promise<Reach> {
  const proxy = readProxy(setting);
  if (proxy === undefined || isDirect(proxy, host, port)) {
    return { host, port, [Symbol.dispose]: () => undefined };
  }
  const { LOOPBACK, relayTo } = await import('./tunnel.ts');
  const relay = await relayTo(proxy, { host, port });
  return {
    ...{ host: LOOPBACK, port: relay.port },
    // TLS names no addresses.
    ...(isAddress(host) ? {} : { servername: host }),
    [Symbol.dispose]: () => relay[Symbol.dispose](),
  };
}

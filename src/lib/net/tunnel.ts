// Connects through a proxy: SOCKS 5 (RFC 1928, 1929) by the package `socks`, HTTP by CONNECT (RFC
// 9110 section 9.3.6). A server whose address was checked is named to the proxy by that address; of
// others, the proxy resolves the name, except with `socks5`.

import { lookup } from 'node:dns/promises';
import { connect as connectTcp, createServer, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { SocksClient } from 'socks';
import { Agent, buildConnector, fetch } from 'undici';
import { t } from '../texts.ts';
import { isAddress, isDirect, type ProxyAddress, ProxyError } from './address-rules.ts';

type Target = {
  readonly host: string;
  readonly port: number;
  /** Checked before: the proxy resolves nothing. */
  readonly addresses?: readonly string[];
};

/** Of the connection to the proxy, and of its answer. */
const STEP_MS = 20_000;
/** Tried one after the other. */
const MAX_ADDRESSES = 3;
const LOGIN_REQUIRED = 407;

/** @throws ProxyError */
export async function connectThrough(proxy: ProxyAddress, target: Target): Promise<Socket> {
  const names = await namesFor(proxy, target);
  let failure: unknown;
  for (const host of names.slice(0, MAX_ADDRESSES)) {
    try {
      return await tunnelled(proxy, host, target);
    } catch (error) {
      failure = error;
      if (!(error instanceof ProxyError) || error.code !== 'proxy_refused') break;
    }
  }
  throw failure;
}

/** What the proxy is asked for. */
async function namesFor(
  { kind }: ProxyAddress,
  { host, addresses }: Target,
): Promise<readonly string[]> {
  if (addresses !== undefined) return addresses;
  if (kind !== 'socks5' || isAddress(host)) return [host];
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

async function tunnelled(proxy: ProxyAddress, host: string, { host: name, port }: Target) {
  const socket = await reached(proxy);
  try {
    const isSocks = proxy.kind === 'socks5' || proxy.kind === 'socks5h';
    return await (isSocks ? bySocks : byConnect)(proxy, socket, host, `${name}:${port}`, port);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function reached(proxy: ProxyAddress): Promise<Socket> {
  const { host, port, kind } = proxy;
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const servername = isAddress(host) ? {} : { servername: host };
  const socket =
    kind === 'https' ? connectTls({ host, port, ...servername }) : connectTcp({ host, port });
  const fail = (reason: string) => {
    socket.destroy();
    const remedy = t`Check its address, and that it runs.`;
    reject(new ProxyError('proxy_unreachable', proxy, t`is not reachable (${reason})`, remedy));
  };
  const onError = (error: Error) => fail('code' in error ? String(error.code) : t`network error`);
  const onTimeout = () => fail(t`no answer in time`);
  socket.setTimeout(STEP_MS, onTimeout);
  socket.on('error', onError);
  socket.once(kind === 'https' ? 'secureConnect' : 'connect', () => {
    socket.setTimeout(0);
    socket.off('timeout', onTimeout);
    resolve(socket);
  });
  return promise;
}

type Handshake = (
  proxy: ProxyAddress,
  socket: Socket,
  host: string,
  shown: string,
  port: number,
) => Promise<Socket>;

const bySocks: Handshake = async (proxy, socket, host, shown, port) => {
  const { username, password } = proxy;
  const login = username === '' ? {} : { userId: username, password };
  const options = {
    proxy: { host: proxy.host, port: proxy.port, type: 5 as const, ...login },
    command: 'connect' as const,
    destination: { host, port },
    existing_socket: socket,
    timeout: STEP_MS,
  };
  try {
    return (await SocksClient.createConnection(options)).socket;
  } catch (error) {
    // The package's error contains its options, and with them the password.
    const said = error instanceof Error ? error.message : '';
    if (/authentication|no accepted auth/i.test(said)) throw loginRefused(proxy);
    const reason = /rejected connection - (\w+)/.exec(said)?.[1] ?? t`it closed the connection`;
    throw refused(proxy, shown, /timed out/i.test(said) ? t`no answer in time` : reason);
  }
};

const byConnect: Handshake = (proxy, socket, host, shown, port) => {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const login = Buffer.from(`${proxy.username}:${proxy.password}`).toString('base64');
  const asked = process.getBuiltinModule('node:http').request({
    method: 'CONNECT',
    path: authority,
    headers: {
      host: authority,
      ...(proxy.username === '' ? {} : { 'proxy-authorization': `Basic ${login}` }),
    },
    createConnection: () => socket,
    timeout: STEP_MS,
  });
  asked.once('connect', ({ statusCode = 0, statusMessage = '' }, _socket, head) => {
    if (statusCode === LOGIN_REQUIRED) return reject(loginRefused(proxy));
    const status = `${statusCode} ${statusMessage.slice(0, MAX_STATUS_CHARS)}`.trim();
    if (statusCode < 200 || statusCode >= 300) return reject(refused(proxy, shown, status));
    socket.setTimeout(0);
    if (head.length > 0) socket.unshift(head);
    resolve(socket);
  });
  asked.once('timeout', () => asked.destroy(new Error('timeout')));
  asked.on('error', () => reject(refused(proxy, shown, t`it closed the connection`)));
  asked.end();
  return promise;
};

const MAX_STATUS_CHARS = 60;

const loginRefused = (proxy: ProxyAddress) =>
  new ProxyError(
    'proxy_login',
    proxy,
    t`refuses the user name or password`,
    t`Correct them in ${proxy.setting}.`,
  );

const refused = (proxy: ProxyAddress, target: string, reason: string) =>
  new ProxyError(
    'proxy_refused',
    proxy,
    t`does not connect to ${target} (${reason})`,
    t`Allow that at the proxy, or add the host to network.noProxy.`,
  );

// For libraries of mail, which take no connection that others opened.

export type Relay = Disposable & { readonly port: number };

/** A port of this machine whose first connection leads to the server. @throws ProxyError */
export async function relayTo(proxy: ProxyAddress, target: Target): Promise<Relay> {
  const far = await connectThrough(proxy, target);
  const server = createServer({ pauseOnConnect: true }, (near) => {
    server.close();
    far.on('error', () => near.destroy()).once('close', () => near.destroy());
    near.on('error', () => far.destroy()).once('close', () => far.destroy());
    near.pipe(far).pipe(near);
  });
  server.maxConnections = 1;
  far.on('error', () => undefined);
  far.once('close', () => server.close());
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.once('error', reject);
  server.listen(0, LOOPBACK, () => {
    const address = server.address();
    resolve(typeof address === 'object' && address !== null ? address.port : 0);
  });
  const port = await promise.catch((error: unknown) => {
    far.destroy();
    throw error;
  });
  return { port, [Symbol.dispose]: () => void server.close() };
}

export const LOOPBACK = '127.0.0.1';

// For undici: connections to checked addresses, and a `fetch`.

/** `checked`: the addresses of a host, which are used instead of its name. */
export function connectorThrough(
  proxy: ProxyAddress,
  checked?: () => readonly string[],
): buildConnector.connector {
  const secure = buildConnector({ allowH2: false });
  return (options, callback) => {
    const port = Number(options.port) || (options.protocol === 'https:' ? 443 : 80);
    const addresses = checked?.();
    const target = { host: options.hostname, port, ...(addresses && { addresses }) };
    connectThrough(proxy, target).then(
      (httpSocket) => {
        if (options.protocol === 'https:') secure({ ...options, httpSocket }, callback);
        else callback(null, httpSocket);
      },
      (error: Error) => callback(error, null),
    );
  };
}

/** Closed as soon as it is idle: such requests are rare. */
const IDLE_MS = 1;

export async function fetchByTunnel(
  proxy: ProxyAddress,
  input: Parameters<typeof globalThis.fetch>[0],
  init: RequestInit = {},
): Promise<Response> {
  const url = new URL(input instanceof Request ? input.url : input);
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  if (isDirect(proxy, url.hostname, port)) return globalThis.fetch(input, init);
  const dispatcher = new Agent({ connect: connectorThrough(proxy), keepAliveTimeout: IDLE_MS });
  // The same standard, typed twice: by undici and by Node's own copy of it.
  return (await fetch(url.href, { ...init, dispatcher } as object)) as unknown as Response;
}

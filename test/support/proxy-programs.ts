// Real proxy programs from npm, on loopback ports: proxy-chain (HTTP CONNECT) and socksv5 (SOCKS 5).
// They know the names under `.test`, which nobody else does, note every target and refusal, and
// connect to this machine only.

import { once } from 'node:events';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { Server as HttpProxy } from 'proxy-chain';

export type ProxyLogin = { readonly username: string; readonly password: string };

export interface ProxyProgram extends AsyncDisposable {
  readonly port: number;
  /** `http://127.0.0.1:1234`, with the login if there is one. */
  readonly url: string;
  /** `host:port` of each connection, as the client named it. */
  readonly targets: string[];
  /** Refused for a wrong login. */
  readonly refused: { count: number };
}

const HOST = '127.0.0.1';
const isKnown = (host: string) => host.endsWith('.test') || /^[\d.]+$/.test(host);

function addressFor(scheme: string, port: number, login?: ProxyLogin): string {
  const name =
    login && `${encodeURIComponent(login.username)}:${encodeURIComponent(login.password)}@`;
  return `${scheme}://${name ?? ''}${HOST}:${port}`;
}

export async function startHttpProxy(login?: ProxyLogin): Promise<ProxyProgram> {
  const targets: string[] = [];
  const refused = { count: 0 };
  const server = new HttpProxy({
    port: 0,
    host: HOST,
    prepareRequestFunction({ hostname, port, username, password }) {
      const isWelcome =
        login === undefined || (username === login.username && password === login.password);
      if (!isWelcome) refused.count += 1;
      else targets.push(`${hostname}:${port}`);
      return {
        requestAuthentication: !isWelcome,
        ...(isKnown(hostname) ? {} : { failMsg: 'no such host' }),
        dnsLookup: ((_name: string, options: { all?: boolean }, done: Found) => {
          if (options.all === true) done(null, [{ address: HOST, family: 4 }]);
          else done(null, HOST, 4);
        }) as never,
      };
    },
  });
  await server.listen();
  return {
    ...{ port: server.port, targets, refused, url: addressFor('http', server.port, login) },
    [Symbol.asyncDispose]: () => server.close(true),
  };
}

type Found = (error: Error | null, address: unknown, family?: number) => void;

type SocksRequest = { dstAddr: string; readonly dstPort: number };
type SocksServer = NodeJS.EventEmitter & {
  useAuth(auth: object): void;
  listen(port: number, host: string): void;
  address(): AddressInfo;
  close(): void;
};
type SocksProgram = {
  createServer(
    taken: (request: SocksRequest, accept: () => void, deny: () => void) => void,
  ): SocksServer;
  readonly auth: {
    None(): object;
    UserPassword(check: (name: string, word: string, done: (is: boolean) => void) => void): object;
  };
};

export async function startSocksProxy(login?: ProxyLogin): Promise<ProxyProgram> {
  const program: SocksProgram = createRequire(import.meta.url)('@mongodb-js/socksv5');
  const targets: string[] = [];
  const refused = { count: 0 };
  const server = program.createServer((request, accept, deny) => {
    targets.push(`${request.dstAddr}:${request.dstPort}`);
    if (!isKnown(request.dstAddr)) return deny();
    request.dstAddr = HOST;
    accept();
  });
  server.useAuth(
    login === undefined
      ? program.auth.None()
      : program.auth.UserPassword((name, word, done) => {
          const isWelcome = name === login.username && word === login.password;
          if (!isWelcome) refused.count += 1;
          done(isWelcome);
        }),
  );
  server.listen(0, HOST);
  await once(server, 'listening');
  const { port } = server.address();
  return {
    ...{ port, targets, refused, url: addressFor('socks5h', port, login) },
    async [Symbol.asyncDispose]() {
      server.close();
    },
  };
}

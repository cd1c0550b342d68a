// Servers for tests of redirects: one that sends each request elsewhere, and one that counts who comes.

import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { portOf } from './listening.ts';

export const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

export interface Redirector extends AsyncDisposable {
  readonly url: string;
  readonly requests: number;
  /** Of the next answers. */
  status: number;
}

/** Answers each request with the status of now and the same path elsewhere. */
export async function startRedirector(to: string): Promise<Redirector> {
  let requests = 0;
  const server = createServer((request, response) => {
    requests += 1;
    response.writeHead(redirector.status, { location: `${to}${request.url ?? ''}` }).end();
    request.resume();
  });
  const port = await portOf(server);
  const redirector: Redirector = {
    url: `http://127.0.0.1:${port}`,
    status: 307,
    get requests() {
      return requests;
    },
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve).closeAllConnections());
    },
  };
  return redirector;
}

export interface Elsewhere extends AsyncDisposable {
  /** Under another name than 127.0.0.1. */
  readonly host: string;
  readonly connections: number;
}

/** A place to which nothing may be sent: whoever connects is counted and sent away. */
export async function startElsewhere(): Promise<Elsewhere> {
  let connections = 0;
  const server = createTcpServer((socket: Socket) => {
    connections += 1;
    socket.on('error', () => undefined).destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  return {
    host: `localhost:${(server.address() as AddressInfo).port}`,
    get connections() {
      return connections;
    },
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

// A server of a test, at a port of its own on this machine.

import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';

/** Its port, once it listens. */
export async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** With its connections. */
export async function closed(
  server: Pick<HttpServer, 'close' | 'closeAllConnections'>,
): Promise<void> {
  const over = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await over;
}

// Whether the gateway can listen where it is told to, and who can reach it there.

import { createServer } from 'node:net';
import { findRunningGateway } from '../../app/running-gateway.ts';
import type { Config } from '../../core/config.ts';
import { isLoopbackHost } from '../../core/loopback.ts';
import type { Terminal } from '../terminal.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

const CHECK = 'address';

/** Problems of an open address are found at load; what is left is to know that it is open. */
export async function checkAddress({ home }: Terminal, { gateway }: Config): Promise<Finding> {
  const { port } = gateway;
  const running = await findRunningGateway(home);
  const host = running?.host ?? gateway.host;
  const taken = running === undefined ? await problemOf(host, port) : '';
  if (taken === 'EADDRINUSE') {
    const remedy = 'End that program, or: nanobot config set gateway.port <another port>';
    return fail(CHECK, `${host}:${port} is taken by another program`, remedy);
  }
  if (taken !== '') {
    const remedy = 'Set gateway.host to 127.0.0.1, and gateway.port to one above 1023.';
    return fail(CHECK, `${host}:${port} cannot be listened on (${taken})`, remedy);
  }
  if (isLoopbackHost(host)) return ok(CHECK, `${host}: reachable from this machine only`);
  const remedy = 'Put a TLS proxy in front, or set gateway.host to 127.0.0.1.';
  return warn(CHECK, `${host}: other machines can reach it, by token`, remedy);
}

/** The system's code for why nobody can listen there; empty where one can. Listens for a moment. */
function problemOf(host: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve('code' in error ? String(error.code) : error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve('')));
  });
}

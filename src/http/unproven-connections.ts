// Connections over which nobody has shown who they are hold no more than a few places, per client and
// in all: the one that has been quiet longest goes. One that waits for an answer goes last (case H07).

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { clientKey } from './token-guard.ts';

/** More than the six that a browser opens to one host. */
export const MAX_UNPROVEN_PER_CLIENT = 8;
const MAX_UNPROVEN = 64;

type Connection = { readonly client: string; requests: number };

export interface UnprovenConnections {
  /** A right token or login came over it: it no longer counts. */
  proven(socket: Socket): void;
}

export function limitUnproven(server: Server): UnprovenConnections {
  // In the order in which they were heard of last.
  const open = new Map<Socket, Connection>();

  function evict(client: string) {
    const all = [...open];
    const ofClient = all.filter(([, connection]) => connection.client === client);
    if (ofClient.length > MAX_UNPROVEN_PER_CLIENT) quietest(ofClient)?.destroy();
    else if (all.length > MAX_UNPROVEN) quietest(all)?.destroy();
  }

  function heard(socket: Socket, change: number) {
    const connection = open.get(socket);
    if (connection === undefined) return;
    connection.requests += change;
    open.delete(socket);
    open.set(socket, connection);
  }

  server.on('connection', (socket) => {
    const client = clientKey(socket.remoteAddress);
    open.set(socket, { client, requests: 0 });
    socket.once('close', () => open.delete(socket));
    evict(client);
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    heard(socket, 1);
    response.once('close', () => heard(socket, -1));
  });
  return { proven: (socket) => open.delete(socket) };
}

function quietest(connections: readonly [Socket, Connection][]): Socket | undefined {
  const quiet = connections.find(([, { requests }]) => requests === 0);
  return (quiet ?? connections[0])?.[0];
}

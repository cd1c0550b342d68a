// Connections that ask for nothing hold no more than a few places: when too many wait for their first
// request, the one that has waited longest goes. A client that speaks at once is never the oldest.

import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

export const MAX_SILENT_CONNECTIONS = 64;

export function evictSilentConnections(server: Server): void {
  const silent = new Set<Socket>();
  server.on('connection', (socket) => {
    silent.add(socket);
    socket.once('close', () => silent.delete(socket));
    const [longest] = silent;
    if (silent.size > MAX_SILENT_CONNECTIONS) longest?.destroy();
  });
  server.on('request', ({ socket }: IncomingMessage) => silent.delete(socket));
}

// The TCP connections of the WhatsApp library, reached through its agent options: which addresses they may
// lead to, cutting the one under a socket, and holding it back while new credentials become durable. TLS is
// the only thing that authenticates WhatsApp's server: certificate checks are never switched off, and an
// unencrypted connection stays on this machine.

import { Agent as PlainAgent } from 'node:http';
import { Agent } from 'node:https';
import type { Duplex } from 'node:stream';
import { ChannelError, NEVER } from '../../kernel/message/errors.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';

/** @throws ChannelError with remedy `never` for an address that is not allowed. */
export function parseSocketUrl(text: string): URL {
  const url = URL.parse(text);
  if (url?.protocol === 'wss:') return url;
  if (url?.protocol === 'ws:' && isLoopbackHost(url.hostname)) return url;
  const problem = 'channels.whatsapp.socketUrl must be wss:, or ws: on a loopback address';
  throw new ChannelError('whatsapp_settings', problem, { remedy: NEVER });
}

export type Carrier = ReturnType<typeof createCarrier>;

export function createCarrier(url: URL) {
  // On loopback there is no TLS; the library's type knows the other kind only. Elsewhere the check is
  // named here because an environment variable could otherwise switch it off.
  const agent =
    url.protocol === 'wss:' ? new Agent({ rejectUnauthorized: true }) : (new PlainAgent() as Agent);
  const connect = agent.createConnection.bind(agent);
  const lines = new Set<Duplex>();
  agent.createConnection = (options, callback) => {
    const line = connect(options, callback);
    if (line) {
      lines.add(line);
      line.once('close', () => lines.delete(line));
    }
    return line;
  };
  const cut = () => {
    for (const line of lines) line.destroy();
  };
  return {
    agent,
    /** Ends the connection without asking the other side. */
    cut,
    /** Nothing more leaves until the work is done; where it fails, the connection is cut instead. */
    holdDuring(work: Promise<unknown>): void {
      const held = [...lines];
      for (const line of held) line.cork();
      work.then(() => {
        for (const line of held) line.uncork();
      }, cut);
    },
  };
}

const MEDIA_HOSTS = /(?:^|\.)whatsapp\.net$/i;

/**
 * For uploads. The library follows redirects, also to other hosts and without TLS: those are refused.
 * @param socket where the account is connected: on this machine, its media host is there too
 */
export function createUploadAgent(socket: URL): Agent {
  const agent = new Agent({ rejectUnauthorized: true });
  const connect = agent.createConnection.bind(agent);
  const isAllowed = (host: string) =>
    isLoopbackHost(socket.hostname) ? host === socket.hostname : MEDIA_HOSTS.test(host);
  agent.createConnection = (options, callback) => {
    if (isAllowed(options.host ?? '')) return connect(options, callback);
    throw new Error('an upload leads to a host that is not WhatsApp’s');
  };
  return agent;
}

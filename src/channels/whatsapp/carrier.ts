// The connections that the library opens, reached through its agent options. The one under a socket: cut
// where the closing handshake hangs, held back while fresh credentials become durable. Those of uploads:
// to WhatsApp's own hosts alone.

import { Agent as PlainAgent } from 'node:http';
import { Agent } from 'node:https';
import type { Duplex } from 'node:stream';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';

export interface Carrier {
  readonly agent: Agent;
  /** Nothing more leaves until the work is done; where it fails, the connection is cut instead. */
  holdDuring(work: Promise<unknown>): void;
  /** Ends the connection without asking the other side. */
  cut(): void;
}

export function createCarrier(url: URL): Carrier {
  // Said here because an environment variable could otherwise switch the check off.
  const agent = url.protocol === 'wss:' ? new Agent({ rejectUnauthorized: true }) : plainAgent();
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
    cut,
    holdDuring(work) {
      const held = [...lines];
      for (const line of held) line.cork();
      work.then(() => {
        for (const line of held) line.uncork();
      }, cut);
    },
  };
}

/** On loopback there is no TLS; the library's type knows the other kind only. */
function plainAgent(): Agent {
  return new PlainAgent() as Agent;
}

const MEDIA_HOSTS = /(?:^|\.)whatsapp\.net$/i;

/**
 * For uploads. The library follows redirects, also to hosts of others and without TLS: those get nothing.
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

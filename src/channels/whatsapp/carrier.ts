// The TCP connection under one socket, reached through the library's `agent` option: cut where the
// closing handshake hangs, held back while fresh credentials become durable.

import { Agent as PlainAgent } from 'node:http';
import { Agent } from 'node:https';
import type { Duplex } from 'node:stream';

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

// Ports for servers that cannot be told to take any: below those that the system hands out, so that
// no connection and no other server of a test gets one in the moment before it is used.

import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

const LOWEST = 10_000;
const EPHEMERAL_RANGE = '/proc/sys/net/ipv4/ip_local_port_range';
/** Where the range is not told: RFC 6335 section 6. */
const USUAL_EPHEMERAL_START = 32_768;

export async function freePorts(count: number): Promise<readonly number[]> {
  const end = firstEphemeralPort();
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(LOWEST, end);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

function firstEphemeralPort(): number {
  try {
    const start = Number.parseInt(readFileSync(EPHEMERAL_RANGE, 'utf8'), 10);
    return start > LOWEST + 1_000 ? start : USUAL_EPHEMERAL_START;
  } catch {
    return USUAL_EPHEMERAL_START;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}

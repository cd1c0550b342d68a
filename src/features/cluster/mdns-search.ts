// Asks the machines of one's own nets by multicast DNS which of them announce model servers. Only a
// question goes out; who answers is a place to be looked at, and no more.

import { createSocket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import { isHomeAddress } from '../../lib/net/address-rules.ts';
import { announcedPorts, serviceQuestion } from './rules/mdns.ts';

type MdnsSearch = {
  readonly services: readonly string[];
  /** Of a machine that names none. */
  readonly ports: readonly number[];
  /** Where the question goes; left out: to all of one's own nets. */
  readonly to?: { readonly address: string; readonly port: number };
  /** `host:port`, each once. */
  found(place: string): void;
};

const EVERYBODY = { address: '224.0.0.251', port: 5353 };
/** However many answer. */
const MAX_PLACES = 64;

/** Listens until the signal aborts. Never throws: a net that cannot be asked has nobody. */
export async function searchByMdns(search: MdnsSearch, signal: AbortSignal): Promise<void> {
  const to = search.to ?? EVERYBODY;
  const from = search.to === undefined ? ownAddresses() : [search.to.address];
  await Promise.all(from.map((address) => askFrom(address, to, search, signal)));
}

/** Of this machine in the nets it is in. */
function ownAddresses(): readonly string[] {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return all
    .filter(({ family, internal, address }) => {
      return family === 'IPv4' && !internal && isHomeAddress(address);
    })
    .map(({ address }) => address);
}

async function askFrom(
  own: string,
  { address, port }: typeof EVERYBODY,
  { services, ports, found }: MdnsSearch,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return;
  const over = Promise.withResolvers<void>();
  const end = () => over.resolve();
  const socket = createSocket('udp4');
  const told = new Set<string>();
  signal.addEventListener('abort', end, { once: true });
  socket.on('error', end);
  socket.on('message', (packet, { address: host }) => {
    if (!isHomeAddress(host)) return;
    const said = announcedPorts(packet, services);
    for (const each of said === undefined || said.length > 0 ? (said ?? []) : ports) {
      const place = `${host}:${each}`;
      if (told.has(place) || told.size >= MAX_PLACES) continue;
      told.add(place);
      found(place);
    }
  });
  socket.bind(0, own, () => {
    try {
      if (address === EVERYBODY.address) socket.setMulticastInterface(own);
      socket.send(serviceQuestion(services), port, address, (error) => {
        if (error !== null) end();
      });
    } catch {
      end();
    }
  });
  await over.promise;
  signal.removeEventListener('abort', end);
  socket.close();
}

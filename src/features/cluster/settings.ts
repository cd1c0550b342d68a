// Configuration of other machines that run models: peers and discovery.

import { z } from 'zod';
import {
  choice,
  count,
  flag,
  port,
  seconds,
  secret,
  section,
} from '../../kernel/config/settings-fields.ts';
import { isHomeAddress, isHomeUrl } from '../../lib/net/address-rules.ts';
import { t } from '../../lib/texts.ts';

type DiscoveryHost = {
  /** IPv4. */
  readonly host: string;
  /** Left out: all configured ports. */
  readonly port?: number;
};

const ENTRY = /^(\d{1,3}(?:\.\d{1,3}){3})(?:\/(\d{1,2})|:(\d{1,5}))?$/;

const WIDEST_NET = 24;

const BITS = 32;

/** Undefined where it is not an address, outside the private ranges, or too large a network. */
export function discoveryHosts(entry: string): readonly DiscoveryHost[] | undefined {
  const [, host = '', bits, port] = ENTRY.exec(entry.trim()) ?? [];
  if (!isHomeAddress(host)) return undefined;
  if (port !== undefined) {
    const at = Number(port);
    return at >= 1 && at <= 65_535 ? [{ host, port: at }] : undefined;
  }
  if (bits === undefined) return [{ host }];
  const length = Number(bits);
  if (length < WIDEST_NET || length > BITS) return undefined;
  const size = 2 ** (BITS - length);
  const parts = host.split('.').map(Number);
  const last = parts.pop() ?? 0;
  const first = last - (last % size);
  return Array.from({ length: size }, (_, index) => first + index)
    .filter((one) => size <= 2 || (one !== first && one !== first + size - 1))
    .map((one) => ({ host: [...parts, one].join('.') }));
}

/** `host:port`, each once; this machine first. */
export function discoveryPlaces(
  addresses: readonly string[],
  ports: readonly number[],
): readonly string[] {
  const hosts = ['127.0.0.1', ...addresses].flatMap((entry) => discoveryHosts(entry) ?? []);
  const places = hosts.flatMap(({ host, port }) =>
    (port === undefined ? ports : [port]).map((each) => `${host}:${each}`),
  );
  return [...new Set(places)];
}

/** No dot, because the name is part of configuration paths. */
const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const MAX_PEERS = 50;
/** RFC 6763; model servers use TCP. */
const SERVICE = /^_[a-z0-9](?:[a-z0-9-]{0,13}[a-z0-9])?\._tcp$/;

const peer = z
  .strictObject({
    apiBase: z
      .url({
        protocol: /^https?$/,
        error: t`Write the full address, e.g. http://studio.lan:1234/v1`,
      })
      .max(2000)
      .describe('Address of its OpenAI-compatible server.'),
    apiKey: secret().default('').describe('Key of its server, if it wants one.'),
    kind: choice(['ollama', 'lmstudio', 'vllm', 'local'], 'local').describe(
      'Type of server. local: any other.',
    ),
    plainHttp: flag(false).describe(
      'Allow http although the address is outside your own networks.',
    ),
  })
  .refine(
    ({ apiBase, plainHttp }) => plainHttp || !apiBase.startsWith('http:') || isHomeUrl(apiBase),
    {
      path: ['apiBase'],
      error: t`Use https, because this address is outside your own networks, or set plainHttp`,
    },
  );

export const clusterSchema = section({
  enabled: flag(false).describe('Use models on other machines.'),
  prefer: choice(['peer', 'local'], 'peer').describe(
    'Which one to use if both this machine and a peer have the model.',
  ),
  everySecs: seconds(5, 3600, 60).describe('Seconds between checks of the peers’ models.'),
  peers: z
    .record(
      z.string().regex(NAME, 'Use lower-case letters, digits, "_" and "-" in the name of a peer'),
      peer,
    )
    .default({})
    .refine((peers) => Object.keys(peers).length <= MAX_PEERS, {
      error: t`Use at most ${MAX_PEERS} peers`,
    })
    .describe('Peers by name. Their models are called peer:<name>/<model>.'),
  discovery: section({
    enabled: flag(false).describe('Search for servers. None is used until an owner confirms it.'),
    addresses: z
      .array(
        z
          .string()
          .max(50)
          .refine((entry) => discoveryHosts(entry) !== undefined, {
            error: t`Write an address in your own networks, with or without a port, or a network of /24 or smaller`,
          }),
      )
      .max(20)
      .default([])
      .describe(
        'Addresses to search in addition to this machine, e.g. 192.168.1.20, 192.168.1.20:8000, 192.168.1.0/24.',
      ),
    mdns: z
      .array(z.string().regex(SERVICE, 'Write a service type, e.g. _exo._tcp'))
      .max(5)
      .default([])
      .describe('Service types to search for by mDNS in your own networks.'),
    ports: z
      .array(port)
      .min(1)
      .max(10)
      .default([52_415, 1234, 8080, 1337])
      .describe('Ports to search.'),
    everySecs: count(10, 86_400, 60).describe('Pause between two searches.'),
  }),
});

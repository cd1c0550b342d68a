// The configuration of further machines that run models: the peers, and where others are looked for.

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
import { isHomeUrl } from '../../lib/net/address-rules.ts';
import { discoveryHosts } from './rules/discovery-places.ts';

/** No dot: it stands in the paths of settings. */
const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const MAX_PEERS = 50;
/** RFC 6763; model servers are asked over TCP. */
const SERVICE = /^_[a-z0-9](?:[a-z0-9-]{0,13}[a-z0-9])?\._tcp$/;

const peer = z
  .strictObject({
    apiBase: z
      .url({ protocol: /^https?$/, error: 'Write the whole address, as http://studio.lan:1234/v1' })
      .max(2000)
      .describe('Of its server for the chat completions of OpenAI.'),
    apiKey: secret().default(''),
    kind: choice(['ollama', 'lmstudio', 'vllm', 'local'], 'local').describe(
      'What serves there; local: any other.',
    ),
    plainHttp: flag(false).describe(
      'http is taken although its address is none of one’s own nets.',
    ),
  })
  .refine(
    ({ apiBase, plainHttp }) => plainHttp || !apiBase.startsWith('http:') || isHomeUrl(apiBase),
    {
      path: ['apiBase'],
      error: 'Use https, for this address is none of your own nets; or set plainHttp',
    },
  );

export const clusterSchema = section({
  enabled: flag(false).describe('Models on other machines are asked.'),
  prefer: choice(['peer', 'local'], 'peer').describe(
    'Which is asked where both have exactly the model.',
  ),
  everySecs: seconds(5, 3600, 60).describe('How often peers are asked what they have.'),
  peers: z
    .record(
      z.string().regex(NAME, 'Name the peer with lower-case letters, digits, "_" and "-"'),
      peer,
    )
    .default({})
    .refine((peers) => Object.keys(peers).length <= MAX_PEERS, {
      error: `At most ${MAX_PEERS} peers`,
    })
    .describe('By name: the models of one are called peer:<name>/<model>.'),
  discovery: section({
    enabled: flag(false).describe(
      'Servers are looked for; none is asked before an owner confirmed it.',
    ),
    addresses: z
      .array(
        z
          .string()
          .max(50)
          .refine((entry) => discoveryHosts(entry) !== undefined, {
            error: 'Write an address of your own nets, also with a port, or a net of /24 or less',
          }),
      )
      .max(20)
      .default([])
      .describe('Besides this machine: 192.168.1.20, 192.168.1.20:8000, 192.168.1.0/24.'),
    mdns: z
      .array(z.string().regex(SERVICE, 'Write a type of service, like _exo._tcp'))
      .max(5)
      .default([])
      .describe('Types of services that machines of one’s own nets are asked for by mDNS.'),
    ports: z.array(port).min(1).max(10).default([52_415, 1234, 8080, 1337]),
    everySecs: count(10, 86_400, 60).describe('Wait between two rounds.'),
  }),
});

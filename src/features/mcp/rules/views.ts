// What the HTTP API answers about tool servers; the page has its types from here.

import { z } from 'zod';

export const TRUSTS = ['read_only', 'ask_once', 'always_ask'] as const;

const shownServer = z.object({
  name: z.string(),
  isHosted: z.boolean(),
  origin: z.string().describe('The program, or the address; without arguments, keys and queries.'),
  enabled: z.boolean(),
  trust: z.enum(TRUSTS),
  state: z
    .enum(['off', 'starting', 'connected', 'login', 'lost', 'failed'])
    .describe('login: the owner has to log in. lost: it is being reconnected.'),
  text: z.string().describe('The state, for people.'),
  tools: z.array(z.object({ name: z.string(), description: z.string() })),
  mayLogIn: z.boolean().describe('A hosted server without a configured key.'),
});

export const shownServers = z.object({ servers: z.array(shownServer) });
export const serverChange = z.strictObject({
  enabled: z.boolean().exactOptional(),
  trust: z.enum(TRUSTS).exactOptional(),
});

export type ShownServers = z.output<typeof shownServers>;

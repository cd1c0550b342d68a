// The tools' part of the configuration: which the agent gets, and where they may reach.

import { z } from 'zod';
import { count, port, seconds } from './config-fields.ts';
import { PERMISSIONS, TOOL_ACCESSES, type ToolAccess } from './rights.ts';

/** Every built-in tool; a test keeps the list true. */
export const TOOL_NAMES = [
  'read_file',
  'read_document',
  'write_file',
  'edit_file',
  'list_dir',
  'remember',
  'recall',
  'message',
  'send_file',
  'web_fetch',
  'time',
] as const;

const web = z.strictObject({
  enabled: z.boolean().default(true).describe('web_fetch: the agent may read web pages.'),
  ports: z
    .array(port)
    .max(20)
    .default([80, 443])
    .describe('Ports of web servers that may be read.'),
  allowPrivateHosts: z
    .array(z.string().regex(/^(?:\[[0-9a-f:.]+\]|[^\s:/@[\]]+)(?::\d{1,5})?$/i))
    .max(50)
    .default([])
    .describe(
      'Hosts, or host:port, that may be read although they are in a private network. Whoever can ' +
        'make the agent read a page reaches them too.',
    ),
  timeoutSecs: seconds(1, 120).default(20).describe('Longest wait for a page, redirects included.'),
  maxBytes: count(10_000, 50_000_000).default(2_000_000).describe('Of one page, as it is sent.'),
  maxDecompressedBytes: count(10_000, 100_000_000)
    .default(5_000_000)
    .describe('Of one page, decompressed.'),
});

const permission = z.enum(PERMISSIONS).optional();
const policyEntry = z.strictObject({
  who: z.string().describe('channel:id, with the stable id of a person or a group there.'),
  ...(Object.fromEntries(TOOL_ACCESSES.map((access) => [access, permission])) as Record<
    ToolAccess,
    typeof permission
  >),
});

export const toolsSchema = z
  .strictObject({
    disabled: z
      .array(z.enum(TOOL_NAMES))
      .default([])
      .describe('Names of tools the agent does not get.'),
    timeoutSecs: seconds(1, 600).default(60).describe('Longest run of one tool.'),
    people: z
      .array(policyEntry)
      .default([])
      .describe(
        'What single people may have done where they are alone with the agent: free, ask (an ' +
          'owner says yes to each call) or never, by what a tool does.',
      ),
    groups: z
      .array(policyEntry)
      .default([])
      .describe('What may be done in single groups, for members who may have it done themselves.'),
    web: web.prefault({}),
  })
  .prefault({});

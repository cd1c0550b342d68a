// The tools' part of the configuration: which the agent gets, and where they may reach.

import { z } from 'zod';
import { HOURS_PATTERN, SEND_POLICIES } from '../../features/letters/rules/letter.ts';
import { execSchema } from '../../tools/exec/settings.ts';
import { financeSection, searchSection } from '../../tools/search/settings.ts';
import { PERMISSIONS, TOOL_ACCESSES, type ToolAccess } from '../access/rights.ts';
import { choice, count, flag, port, seconds, section } from './settings-fields.ts';

/** Every built-in tool; a test keeps the list true. */
export const TOOL_NAMES = [
  'read_file',
  'read_document',
  'read_result',
  'write_file',
  'edit_file',
  'list_dir',
  'remember',
  'recall',
  'session_search',
  'read_earlier',
  'expand',
  'read_skill',
  'message',
  'ask_user',
  'plan',
  'checkpoint',
  'backtrack',
  'send_email',
  'check_inbox',
  'send_file',
  'exec',
  'execute_code',
  'web_fetch',
  'web_search',
  'search_files',
  'search',
  'financial_search',
  'time',
  'cron',
  'spawn',
  'workflow',
] as const;

const web = z.strictObject({
  enabled: flag(true).describe('web_fetch and web_search: the agent may read the web.'),
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
  timeoutSecs: seconds(1, 120, 20).describe('Longest wait for a page, redirects included.'),
  maxBytes: count(10_000, 50_000_000, 2_000_000).describe('Of one page, as it is sent.'),
  maxDecompressedBytes: count(10_000, 100_000_000, 5_000_000).describe(
    'Of one page, decompressed.',
  ),
  search: searchSection.prefault({}),
});

const sendPolicy = choice(SEND_POLICIES, 'first_contact');
const send = z.strictObject({
  email: sendPolicy.describe(
    'When an owner sees a mail of send_email before it goes out: first_contact (nothing was sent ' +
      'there before), always, outside_hours, never. What others ask for, or where words of others ' +
      'were read, is always shown first.',
  ),
  chats: sendPolicy.describe('The same for texts of the message tool to other people.'),
  hours: z
    .string()
    .regex(HOURS_PATTERN, 'Write hours and minutes, like 08:00-20:00')
    .default('08:00-20:00')
    .describe('For outside_hours, in the time zone of the owner who asks.'),
});

const approvals = z.strictObject({
  alwaysDays: count(0, 365, 30).describe(
    'For how many days "Always allow" holds: exactly that call, in that conversation, for whoever ' +
      'asked there. 0: an owner is asked each time.',
  ),
});

const permission = z.enum(PERMISSIONS).optional();
const policyEntry = z.strictObject({
  who: z.string().describe('channel:id, with the stable id of a person or a group there.'),
  ...(Object.fromEntries(TOOL_ACCESSES.map((access) => [access, permission])) as Record<
    ToolAccess,
    typeof permission
  >),
});

export const toolsSchema = section({
  disabled: z
    .array(z.enum(TOOL_NAMES))
    .default([])
    .describe('Names of tools the agent does not get.'),
  timeoutSecs: seconds(1, 600, 60).describe('Longest run of one tool.'),
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
  exec: execSchema.prefault({}),
  web: web.prefault({}),
  finance: financeSection.prefault({}),
  send: send.prefault({}),
  approvals: approvals.prefault({}),
});

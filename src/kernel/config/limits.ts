// The limits' part of the configuration: messages, and what may be spent on models in a day.

import { z } from 'zod';
import { t } from '../../lib/texts.ts';
import { HOURS_PATTERN } from '../../lib/time/zone-time.ts';
import { execSchema, financeSection, searchSection } from '../../tools/exec/settings.ts';
import {
  APPROVAL_POLICIES,
  CONFIGURED_PERMISSIONS,
  TOOL_ACCESSES,
  type ToolAccess,
} from '../access/rights.ts';
import { choice, count, flag, port, seconds, secret, section, text } from './settings-fields.ts';

/** When an owner approves a letter to another person before it is sent. */
const SEND_POLICIES = ['never', 'first_contact', 'always', 'outside_hours'] as const;

export type SendPolicy = (typeof SEND_POLICIES)[number];

const MOST_MESSAGES = 1_000_000;
const MOST_TOKENS = 1_000_000_000_000;
const MOST_MONEY = 1_000_000_000;

const messageCount = (usual: number) => count(0, MOST_MESSAGES, usual);
const tokenLimit = () => count(0, MOST_TOKENS, 0);
const money = () => z.number().min(0).max(MOST_MONEY);
const moneyLimit = () => money().default(0);

const messages = z.strictObject({
  perMinute: messageCount(20).describe(
    'Messages of one person per minute; ten times as many for owners. 0: no limit.',
  ),
  perDay: messageCount(200).describe(
    'Messages of one person per day; ten times as many for owners. 0: no limit.',
  ),
  groupPerMinute: messageCount(30).describe(
    'Messages to the agent in one group per minute, from all members except owners.',
  ),
  groupPerDay: messageCount(500).describe('The same per day.'),
});

const budget = z.strictObject({
  perPersonTokensPerDay: tokenLimit().describe(
    'Tokens, in and out, per person and day. 0: no limit.',
  ),
  perChatTokensPerDay: tokenLimit().describe('Tokens per conversation and day. 0: no limit.'),
  perJobTokensPerDay: tokenLimit().describe('Tokens per scheduled job and day. 0: no limit.'),
  totalTokensPerDay: tokenLimit().describe('Tokens per day in total. 0: no limit.'),
  perPersonMoneyPerDay: moneyLimit().describe('Money per person and day. 0: no limit.'),
  perChatMoneyPerDay: moneyLimit().describe('Money per conversation and day. 0: no limit.'),
  perJobMoneyPerDay: moneyLimit().describe('Money per scheduled job and day. 0: no limit.'),
  totalMoneyPerDay: moneyLimit().describe('Money per day in total. 0: no limit.'),
  currency: z
    .string()
    .min(1)
    .max(8)
    .default('USD')
    .describe(
      'Currency of all amounts. For another one than USD, set all prices in models.prices.',
    ),
  unpriced: z
    .union(
      [z.literal('refuse'), z.strictObject({ input: money(), output: money() })],
      t`Use "refuse" or { "input": 3, "output": 15 }`,
    )
    .optional()
    .describe(
      'Price per million tokens of a cloud model with an unknown price, if a budget in money is set. ' +
        'refuse: do not use the model. Default: twice the highest known price with USD, refuse with ' +
        'another currency.',
    ),
});

const exception = z.strictObject({
  who: z.string().describe('A channel, or channel:id with the stable id of a person or group.'),
  perMinute: count(0, MOST_MESSAGES).optional(),
  perDay: count(0, MOST_MESSAGES).optional(),
  tokensPerDay: count(0, MOST_TOKENS).optional(),
  moneyPerDay: money().optional(),
});

const answers = z.strictObject({
  maxChars: count(0, 10_000_000, 40_000).describe(
    'Longest answer sent as text, in characters of Markdown. The rest is attached as a file. 0: no ' +
      'limit.',
  ),
});

export const limitsSchema = z.strictObject({
  messages: messages.prefault({}),
  answers: answers.prefault({}),
  budget: budget.prefault({}),
  exceptions: z
    .array(exception)
    .default([])
    .describe(
      'Different limits for a channel, a person or a group. The most specific one applies.',
    ),
});

const price = z.strictObject({
  model: z.string().min(1),
  input: money(),
  output: money(),
  cached: money(),
  written: money()
    .optional()
    .describe('For tokens written to the provider’s cache, if they cost more.'),
});

export const modelsSchema = z.strictObject({
  prices: z
    .array(price)
    .default([])
    .describe('Prices per million tokens, for models whose price is unknown or different.'),
});

export type LimitsConfig = z.infer<typeof limitsSchema>;

// The `sessions` and `memory` sections of the configuration.

export const sessionsSchema = z.strictObject({
  rotationSizeBytes: count(10_000, 1_000_000_000, 1_000_000).describe(
    'Size in bytes at which a conversation goes on in a new session file.',
  ),
  rotationTokens: count(1000, 100_000_000, 200_000).describe('The same in tokens.'),
  carry: choice(['recent', 'nothing'], 'recent').describe(
    'What a new session file starts with: the summary and the last messages, or nothing.',
  ),
  rotationCarryMessages: count(0, 1000, 10).describe(
    'Last messages that a new session file starts with.',
  ),
  keepWorkDays: count(1, 3650, 30).describe(
    'Days to keep the conversations of subagents and jobs.',
  ),
  recordPrompts: flag(true).describe(
    'Keep the request log, so that "nanobot replay" can repeat turns exactly.',
  ),
  timeZone: text().describe(
    'IANA time zone; a new session file starts at its midnight. Empty: the time zone of the machine.',
  ),
});

export const memorySchema = z.strictObject({
  enabled: flag(true).describe('The tools remember and recall, and MEMORY.md in the prompt.'),
  reflection: section({
    everyHours: count(0, 8760, 0).describe(
      'Hours between reflections on the owners’ memory. 0: never.',
    ),
    apply: choice(['ask', 'write'], 'ask').describe(
      'ask: an owner approves the proposed changes; write: they are saved at once.',
    ),
  }),
});

// The tools' part of the configuration: which tools the agent gets, and what they may reach.

/** Every built-in tool; a test verifies that the list is complete. */
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
  'semantic_search',
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

const BUILT_IN: ReadonlySet<string> = new Set(TOOL_NAMES);
const OF_SERVER = /^mcp_[A-Za-z0-9_-]+$/;

/**
 * Whether a file may name a tool: a built-in one, or one of a tool server, which is known only
 * while the server runs.
 */
export const mayBeTool = (name: string) => BUILT_IN.has(name) || OF_SERVER.test(name);

const web = z.strictObject({
  enabled: flag(true).describe('The tools web_fetch and web_search: the agent may read the web.'),
  ports: z
    .array(port)
    .max(20)
    .default([80, 443])
    .describe('Ports of web servers that the agent may read.'),
  allowPrivateHosts: z
    .array(
      z
        .string()
        .regex(
          /^(?:\[[0-9a-f:.]+\]|[^\s:/@[\]]+)(?::\d{1,5})?$/i,
          'Write a host, or host:port, without http:// and path',
        ),
    )
    .max(50)
    .default([])
    .describe(
      'Hosts, or host:port, in private networks that the agent may read. Anyone who can make the ' +
        'agent open a page can reach them, too.',
    ),
  timeoutSecs: seconds(1, 120, 20).describe('Longest wait for a page, including redirects.'),
  maxBytes: count(10_000, 50_000_000, 2_000_000).describe('Largest page in bytes, as transferred.'),
  maxDecompressedBytes: count(10_000, 100_000_000, 5_000_000).describe(
    'Largest page in bytes, decompressed.',
  ),
  search: searchSection.prefault({}),
});

const sendPolicy = choice(SEND_POLICIES, 'first_contact');
const send = z.strictObject({
  email: sendPolicy.describe(
    t`When an owner approves an email of send_email before it is sent: first_contact (first email to ` +
      t`this address), always, outside_hours or never. Emails that others ask for, and emails of tainted ` +
      t`conversations, always need approval.`,
  ),
  chats: sendPolicy.describe(t`The same for messages of the message tool to other people.`),
  hours: z
    .string()
    .regex(HOURS_PATTERN, 'Write hours and minutes, e.g. 08:00-20:00')
    .default('08:00-20:00')
    .describe('Hours for outside_hours, in the time zone of the owner who asks.'),
});

const approvalPolicy = choice(APPROVAL_POLICIES, 'normal');
const approvals = z.strictObject({
  owner: approvalPolicy.describe(
    t`What an owner in a private chat is asked. normal: only what can leave this machine or changes ` +
      t`instruction files; strict: every program, job and letter; open: nothing. Each of them asks ` +
      t`before anything with an effect while untrusted content is in view.`,
  ),
  trusted: approvalPolicy.describe(
    t`The same for trusted people. normal: they keep notes of their own and set reminders for themselves.`,
  ),
  alwaysDays: count(0, 365, 30).describe(
    'Days that an allow rule ("Allow for ... days") lasts. 0: each approval is for one call only.',
  ),
});

const permission = z.enum(CONFIGURED_PERMISSIONS).optional();
const policyEntry = z.strictObject({
  who: z.string().describe('channel:id with the stable id of a person or group.'),
  approvals: z
    .enum(APPROVAL_POLICIES)
    .optional()
    .describe('Approvals of this person or group; default: those of the role.'),
  ...(Object.fromEntries(TOOL_ACCESSES.map((access) => [access, permission])) as Record<
    ToolAccess,
    typeof permission
  >),
});

export const toolsSchema = section({
  disabled: z.array(z.enum(TOOL_NAMES)).default([]).describe('Tools that the agent does not get.'),
  timeoutSecs: seconds(1, 600, 60).describe('Longest run of one tool call.'),
  people: z
    .array(policyEntry)
    .default([])
    .describe(
      'Rights of people in private chats, by the effect of a tool: free, ask (an owner approves each ' +
        'call) or never.',
    ),
  groups: z
    .array(policyEntry)
    .default([])
    .describe('Rights in groups, for members who have these rights themselves.'),
  exec: execSchema.prefault({}),
  web: web.prefault({}),
  finance: financeSection.prefault({}),
  send: send.prefault({}),
  approvals: approvals.prefault({}),
});

// Back-ups that the gateway makes by itself.

/** A unit, or a number with the letter of one. */
export const EVERY_PATTERN = /^(?:(hour|day|week)|(\d{1,3})([hd]))$/;
/** Days, weeks, months. */
export const KEEP_PATTERN = /^(?=\d)(?:(\d{1,4})d)?(?:(\d{1,4})w)?(?:(\d{1,4})m)?$/;

const orEmpty = (pattern: RegExp) => new RegExp(`^$|${pattern.source}`);

/** How an S3 service is reached. */
export const S3_SETTINGS = {
  endpoint: text().describe(
    'Address of the S3 service. Empty: AWS_ENDPOINT_URL, else that of AWS.',
  ),
  region: text().describe('Empty: AWS_REGION, else us-east-1.'),
  accessKeyId: text().describe('Empty: AWS_ACCESS_KEY_ID.'),
  secretAccessKey: secret().default('').describe('Empty: AWS_SECRET_ACCESS_KEY.'),
};

export const backupSchema = z.strictObject({
  to: text().describe(
    'Where back-ups are kept: a folder, or s3://bucket/prefix. It should be on another disk than the home.',
  ),
  every: z
    .string()
    .regex(
      orEmpty(EVERY_PATTERN),
      'Write hour, day, week, or a number of hours or days such as 12h',
    )
    .default('')
    .describe('How often the gateway makes one. Empty: never by itself.'),
  keep: z
    .string()
    .regex(orEmpty(KEEP_PATTERN), 'Write days, weeks and months, e.g. 7d4w6m')
    .default('7d4w6m')
    .describe(
      'Which back-ups stay: the newest of each of the last days, weeks and months. Empty: all.',
    ),
  encrypt: text().describe(
    'Who can read them: a recipient of age (age1...), several with spaces between, or "passphrase". ' +
      'Used when a place gets its first back-up. Empty: not encrypted.',
  ),
  s3: section(S3_SETTINGS),
});

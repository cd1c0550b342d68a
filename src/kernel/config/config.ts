// The configuration as one schema: types, defaults, limits and the texts that editors show. Keys
// are the original's where it has them; every key here has an effect. Secrets are marked, so that
// printing and logging can mask them without a list of their own.

import { z } from 'zod';
import { compactionSchema } from '../../agent/compaction-settings.ts';
import { emailSchema, mailboxesOf } from '../../channels/email/settings.ts';
import { larkSchema } from '../../channels/lark/settings.ts';
import { telegramSchema } from '../../channels/telegram/settings.ts';
import { whatsappSchema } from '../../channels/whatsapp/settings.ts';
import { AGENT_SECTIONS, FEATURES, SECTIONS } from '../../features.ts';
import { t } from '../../lib/texts.ts';
import { providersSchema } from '../../providers/settings.ts';
import { type AccountId, DEFAULT_ACCOUNT } from '../message/ids.ts';
import { telemetrySection } from '../observe/settings.ts';
import {
  backupSchema,
  limitsSchema,
  memorySchema,
  modelsSchema,
  S3_SETTINGS,
  sessionsSchema,
  toolsSchema,
} from './limits.ts';
import {
  choice,
  count,
  flag,
  QUEUE_MODES,
  seconds,
  secret,
  section,
  text,
  texts,
} from './settings-fields.ts';

export { PROVIDER_NAMES, type ProviderName } from '../../providers/settings.ts';
export { TOOL_NAMES } from './limits.ts';

export const CONFIG_VERSION = 1;

const agentDefaults = z.strictObject({
  workspace: text().describe(
    'Folder that the agent may read and write. Empty: workspace/ in the home.',
  ),
  model: text().describe(
    'Main model, e.g. anthropic/claude-opus-4-5. Empty: detected from API keys and local servers.',
  ),
  fallbackModels: texts().describe(
    'Models to try in order when the main model fails. See agents.circuit.',
  ),
  fallback: choice(['auto', 'ask', 'off'], 'auto').describe(
    'When the main model fails. auto: the next of fallbackModels answers; ask: only after a yes of the ' +
      'person in the chat, and never for jobs and other work without one; off: the error is the answer.',
  ),
  fastModel: text().describe(
    'Background model for summaries, checks and titles. Empty: a cheaper model of the same provider. ' +
      'Conversations with a local model are never sent to a service.',
  ),
  maxTokens: count(1, 1_000_000, 4096).describe('Longest answer of one model call in tokens.'),
  temperature: z
    .number()
    .min(0)
    .max(2)
    .default(0.7)
    .describe('How freely the model words its answers. 0: always the likeliest words.'),
  thinkingBudget: count(0, 128_000, 0).describe('Tokens for thinking. 0: off. /think changes it.'),
  maxToolIterations: count(1, 200, 20).describe(
    'Most rounds of tool use in one turn; the answer follows them.',
  ),
  maxContextTokens: count(2048, 10_000_000, 128_000).describe(
    'Context window in tokens that is used, where the model has no smaller one.',
  ),
  compaction: compactionSchema.prefault({}),
  finalAnswer: choice(['inline', 'separate'], 'inline').describe(
    'separate: after tool use, one more call without tools writes the answer from all results, and ' +
      'text that the model writes while it works is not sent.',
  ),
  claimCheck: flag(true).describe(
    'Ask again when an answer claims an action that no tool performed.',
  ),
  maxConcurrentChats: count(1, 10_000, 64).describe(
    'Most turns that use the model at the same time. A server of one’s own has a line of its own: localModels.places.',
  ),
  maxSameToolCallPerTurn: count(1, 100, 3).describe(
    'Most identical calls with the same result in one turn, for tools that change something.',
  ),
  maxToolResultChars: count(200, 1_000_000, 10_000).describe(
    'Longest tool result in characters that the model gets in full; it gets a briefing of longer ones.',
  ),
  clearing: section({
    aboveTokens: count(1000, 10_000_000, 100_000).describe(
      'Above this size in tokens, a model call leaves out the oldest tool results.',
    ),
    abovePercent: count(10, 95, 66).describe(
      'The same as a percentage of the context window; the smaller limit applies.',
    ),
    keepNewest: count(0, 100, 5).describe('Newest tool results that always stay.'),
  }),
  maxTurnSecs: seconds(1, 3600, 600).describe('Longest turn.'),
  maxTurnTokens: count(1000, 100_000_000, 1_000_000).describe(
    'Most tokens, in and out, for all model calls of one turn.',
  ),
});

const modelNames = (description: string) =>
  z.array(z.string()).max(100).default([]).describe(`${description} Example: ollama/my-model.`);

const kernelSchema = z.strictObject({
  $schema: z.string().optional().describe('For editors; no effect.'),
  version: z.literal(CONFIG_VERSION).default(CONFIG_VERSION),
  agents: section({
    defaults: agentDefaults.prefault({}),
    ...AGENT_SECTIONS,
  }).describe('The agent: models, limits of a turn, subagents, workflows and ways of working.'),
  providers: providersSchema.prefault({}).describe('Services and servers that run models.'),
  channels: section({
    telegram: telegramSchema.prefault({}),
    email: emailSchema.prefault({}),
    whatsapp: whatsappSchema.prefault({}),
    lark: larkSchema.prefault({}),
  }).describe('Where people write to the agent.'),
  network: section({
    proxy: secret()
      .default('')
      .describe(
        'Proxy of all connections to other machines, except those in the home network: http://, https://, ' +
          'socks5:// or socks5h:// with host and port, e.g. socks5h://proxy.example:1080. Empty: none.',
      ),
    noProxy: texts().describe(
      'Hosts reached without a proxy, with their subdomains, or blocks such as 10.0.0.0/8; in addition to ' +
        'the environment variable NO_PROXY.',
    ),
  }).describe('Proxies.'),
  gateway: section({
    host: text('127.0.0.1').describe(
      'Address on which the web page and the API listen. 127.0.0.1: only for this machine.',
    ),
    port: z
      .int()
      .min(0)
      .max(65_535)
      .default(18_790)
      .describe('Port of the web page and the API. 0: any free port.'),
    token: secret()
      .default('')
      .describe('Token for the web page and the API. Required for any host except loopback.'),
    allowedHosts: texts().describe('Additional host names under which browsers may open the page.'),
    publicUrl: text().describe(
      'Address at which browsers elsewhere reach the gateway, e.g. https://nanobot.example.org.',
    ),
    drainSecs: seconds(0, 300, 20).describe(
      'Longest wait for running turns when the gateway stops.',
    ),
  }).describe('The web page and the API.'),
  coalesce: section({
    mode: choice(['wait', 'speculative'], 'speculative').describe(
      'How messages in a row become one turn. speculative: in a private chat answer a single message at once, and ' +
        'again when more arrive; wait: always wait until the chat is quiet.',
    ),
    quietMs: count(0, 10_000, 700).describe('Wait after the last message.'),
    maxWaitMs: count(0, 60_000, 3000).describe('Longest wait after the first message.'),
    maxMessages: count(1, 100, 20).describe('Most messages in one turn; more become the next one.'),
    continuationMs: count(0, 10_000, 1500).describe(
      'Wait after a message as long as the channel allows, because it may be continued.',
    ),
  }).describe('How messages sent shortly after each other become one turn.'),
  queue: section({
    mode: choice(QUEUE_MODES, 'steer').describe(
      'What messages sent during a turn do. steer: they join it; followup: each gets a turn of its own afterwards; ' +
        'collect: all of them become the next turn; interrupt: they stop it, and it starts anew with all messages.',
    ),
    maxPendingPerChat: count(1, 10_000, 200).describe(
      'Most messages of one chat that wait; more are refused.',
    ),
    maxPending: count(1, 1_000_000, 10_000).describe(
      'Most messages that wait in total; more are refused.',
    ),
  }).describe('What waits for the agent.'),
  edits: section({
    afterAnswer: choice(['offer', 'edit', 'ignore'], 'offer').describe(
      'What happens when a message is edited after its answer. offer: ask whether to answer again; edit: ' +
        'replace the answer to the newest message automatically, without actions.',
    ),
  }).describe('Edited messages.'),
  limits: limitsSchema.prefault({}).describe('How much people may use, and what may be spent.'),
  models: modelsSchema.prefault({}).describe('What is known about models.'),
  sessions: sessionsSchema.prefault({}).describe('Files of conversations.'),
  store: section({
    engine: choice(['sqlite', 'postgres'], 'sqlite').describe(
      'Where messages, conversations under way and all other state are kept. sqlite: in state.db; postgres: in the ' +
        'PostgreSQL database of store.url (docs/operate/postgresql.md).',
    ),
    url: secret()
      .default('')
      .describe('With engine postgres: postgres://user:password@host:5432/database.'),
    poolUrl: secret()
      .default('')
      .describe(
        'With storage.path: the same database through a pooler in transaction mode (PgBouncer), used by each ' +
          'process for all but one of its connections. Empty: no pooler.',
      ),
    snapshotMinutes: count(0, 10_080, 60).describe(
      'Minutes between two copies of state.db, from which a damaged one is rebuilt; a large file is copied less ' +
        'often. 0: no copies.',
    ),
    onDamage: choice(['recover', 'stop'], 'recover').describe(
      'What the start does with a damaged state.db. recover: rebuild it and report what is lost; stop: change ' +
        'nothing and end.',
    ),
  }).describe('Where the state is kept.'),
  storage: section({
    path: text().describe(
      'For several processes of the gateway on one PostgreSQL: the folder of a shared volume in which they share ' +
        'conversations, media, the workspace and the token. Empty: one process, with all of it in its home (docs/operate/postgresql.md).',
    ),
    media: section({
      kind: choice(['files', 's3'], 'files').describe(
        'Where received and sent files are kept. files: in the folder media; s3: in a bucket of an S3 service, of ' +
          'which each home keeps copies for a while.',
      ),
      bucket: text().describe('With kind s3: name of the bucket, which exists.'),
      prefix: text().describe('Before the names of all objects, e.g. nanobot/media. May be empty.'),
      ...S3_SETTINGS,
    }).describe('Received and sent files.'),
  }).describe('What several processes of the gateway share, and where files of messages are kept.'),
  tools: toolsSchema.describe('What the agent may do.'),
  memory: memorySchema.prefault({}).describe('What the agent remembers.'),
  retry: section({
    providerMinSecs: seconds(0, 60, 1).describe(
      'Wait before the first retry; each further one waits twice as long.',
    ),
    providerMaxSecs: seconds(0, 600, 30).describe('Longest wait before a retry.'),
    providerAttempts: count(0, 10, 3).describe('Retries after the first attempt.'),
  }).describe('Repeated calls of a model that failed.'),
  timeouts: section({
    firstTokenSecs: seconds(1, 3600, 90).describe('Longest wait for the first words of an answer.'),
    streamIdleSecs: seconds(1, 3600, 60).describe('Longest pause within an answer.'),
    modelCallSecs: seconds(1, 7200, 600).describe('Longest call of a model.'),
  }).describe('How long calls of a model may take.'),
  media: section({
    maxBytes: count(1_000_000, 10_000_000_000_000, 2_000_000_000).describe(
      'Most bytes for all received and sent files. The least recently used are deleted first. With ' +
        'storage.media.kind s3: for the copies in each home.',
    ),
    maxFileBytes: count(1000, 2_000_000_000, 25_000_000).describe(
      'Largest file in bytes to receive or send; a channel may allow less.',
    ),
    keepDays: count(1, 3650, 30).describe('Days to keep an unused file.'),
    images: flag(true).describe('Send images to models that can see them. false: never.'),
    visionModels: modelNames(t`Models that can see images although their name does not show it.`),
    blindModels: modelNames(t`Models that cannot see images although their name suggests it.`),
    maxInlineChars: count(0, 100_000, 8000).describe(
      'Characters of a document shown with its message; read_document reads the rest.',
    ),
  }).describe('Received and sent files.'),
  backup: backupSchema.prefault({}).describe('Back-ups that the gateway makes by itself.'),
  ...SECTIONS,
  telemetry: telemetrySection.describe('Metrics, traces and the audit.'),
  logging: section({
    level: choice(['debug', 'info', 'warn', 'error'], 'info').describe(
      'The least important lines that are written.',
    ),
    keepDays: count(1, 3650, 14).describe('Days to keep the log.'),
    stdout: flag(false).describe(
      'Also write the log to standard output, one JSON object per line, unless it is a terminal.',
    ),
  }).describe('The log.'),
});

type WithSettings = {
  readonly name: string;
  readonly settings?: { readonly at: string; readonly schema: z.ZodType };
};
const brought = FEATURES.flatMap((feature: WithSettings) => feature.settings ?? []);

/** Includes the sections that features define and read themselves. */
export const configSchema = kernelSchema.extend(
  Object.fromEntries(brought.map(({ at, schema }) => [at, schema])) as Record<never, z.ZodType>,
);

/** A complete configuration: every default filled in, every `${NAME}` resolved. */
export type Config = z.infer<typeof kernelSchema>;
/** What a person writes: any part may be absent. */
export type ConfigInput = z.input<typeof kernelSchema>;

// Which channels may have several accounts, and the configuration as each account sees it: its own
// settings replace those of the channel, so that readers need not know the others.

type ChannelsConfig = Config['channels'];

/** By account, the default one first. */
type AccountViews = ReadonlyMap<AccountId, ChannelsConfig>;

const SEVERAL: Readonly<Record<string, (channels: ChannelsConfig) => AccountViews>> = {
  email: (channels) =>
    new Map([...mailboxesOf(channels.email)].map(([id, email]) => [id, { ...channels, email }])),
};

export const mayHaveSeveral = (channel: string) => Object.hasOwn(SEVERAL, channel);

export function accountViews(channels: ChannelsConfig, channel: string): AccountViews {
  return SEVERAL[channel]?.(channels) ?? new Map([[DEFAULT_ACCOUNT, channels]]);
}

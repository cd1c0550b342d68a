// The configuration as one schema: types, defaults, limits and the texts editors show. Keys are the
// original's where it has them; every key here has an effect. Secrets are marked, so that printing
// and logging can hide them without a list of their own.

import { z } from 'zod';
import { compactionSchema } from '../../agent/compaction-settings.ts';
import { emailSchema } from '../../channels/email/settings.ts';
import { larkSchema } from '../../channels/lark/settings.ts';
import { telegramSchema } from '../../channels/telegram/settings.ts';
import { whatsappSchema } from '../../channels/whatsapp/settings.ts';
import { clusterSchema } from '../../features/cluster/settings.ts';
import {
  localModelsSchema,
  modelCapabilitiesSchema,
} from '../../features/local-models/settings.ts';
import { mcpServersSchema } from '../../features/mcp/settings.ts';
import { modeFields } from '../../features/modes/settings.ts';
import {
  cronSchema,
  heartbeatSchema,
  noticesSchema,
  quietHoursSchema,
} from '../../features/schedule/settings.ts';
import { steadinessFields } from '../../features/steadiness/settings.ts';
import {
  calibrationSchema,
  subagentsSchema,
  votingSchema,
} from '../../features/subagents/settings.ts';
import { voiceSchema } from '../../features/voice/settings.ts';
import { workflowsSchema } from '../../features/workflows/settings.ts';
import { FEATURES } from '../../features.ts';
import { providersSchema } from '../../providers/settings.ts';
import { telemetrySection } from '../observe/settings.ts';
import { limitsSchema, memorySchema, modelsSchema, sessionsSchema } from './limits.ts';
import { choice, count, flag, seconds, secret, section, text, texts } from './settings-fields.ts';
import { toolsSchema } from './tools.ts';

export { PROVIDER_NAMES, type ProviderName } from '../../providers/settings.ts';
export { TOOL_NAMES } from './tools.ts';

export const CONFIG_VERSION = 1;

const agentDefaults = z.strictObject({
  workspace: text().describe('Folder the agent may read and write; empty: workspace/ in the home.'),
  model: text().describe(
    'e.g. anthropic/claude-opus-4-5; empty: found from keys and local servers.',
  ),
  fallbackModels: texts().describe('Tried in order when the model fails; see agents.circuit.'),
  fastModel: text().describe(
    'For side work: summaries, checks, titles; empty: a cheaper one of the same vendor. What a model on ' +
      'one’s own machine was told goes to no service.',
  ),
  maxTokens: count(1, 1_000_000, 4096).describe('Longest answer of one model call, tokens.'),
  temperature: z.number().min(0).max(2).default(0.7),
  thinkingBudget: count(0, 128_000, 0).describe('Tokens to think; 0 = off. /think changes it.'),
  maxToolIterations: count(1, 200, 20).describe('Model calls of one turn.'),
  maxContextTokens: count(2048, 10_000_000, 128_000),
  compaction: compactionSchema.prefault({}),
  finalAnswer: choice(['inline', 'separate'], 'inline').describe(
    'separate: after work with tools the answer is written by one more call, without tools, over ' +
      'all results; what the model says while it works is not sent.',
  ),
  claimCheck: flag(true).describe(
    'An answer that says something was done which no tool did is asked for once more.',
  ),
  maxConcurrentChats: count(1, 10_000, 16).describe('Turns that ask the model at once.'),
  maxSameToolCallPerTurn: count(1, 100, 3).describe(
    'Identical calls, with one and the same result, of a tool that changes something.',
  ),
  maxToolResultChars: count(200, 1_000_000, 10_000).describe(
    'Longest result of a tool that is shown whole; of a longer one a briefing is shown.',
  ),
  clearing: section({
    aboveTokens: count(1000, 10_000_000, 100_000).describe(
      'From this size of a call on, the oldest results of tools are cleared from it.',
    ),
    abovePercent: count(10, 95, 66).describe(
      'The same, as a part of the model’s context; the smaller of the two counts.',
    ),
    keepNewest: count(0, 100, 5).describe('Newest results that always stay.'),
  }),
  maxTurnSecs: seconds(1, 3600, 600).describe('Wall time of one turn.'),
  maxTurnTokens: count(1000, 100_000_000, 1_000_000).describe(
    'Tokens, in and out, of one turn over all its calls.',
  ),
});

const modelNames = (description: string) =>
  z.array(z.string()).max(100).default([]).describe(`${description} E.g. ollama/my-model.`);

const kernelSchema = z.strictObject({
  $schema: z.string().optional().describe('For editors; has no effect.'),
  version: z.literal(CONFIG_VERSION).default(CONFIG_VERSION),
  agents: section({
    defaults: agentDefaults.prefault({}),
    subagents: subagentsSchema,
    workflows: workflowsSchema,
    voting: votingSchema,
    calibration: calibrationSchema,
    ...modeFields,
    ...steadinessFields,
  }),
  providers: providersSchema.prefault({}),
  channels: section({
    telegram: telegramSchema.prefault({}),
    email: emailSchema.prefault({}),
    whatsapp: whatsappSchema.prefault({}),
    lark: larkSchema.prefault({}),
  }),
  gateway: section({
    host: text('127.0.0.1'),
    port: z.int().min(0).max(65_535).default(18_790).describe('0: any free port.'),
    token: secret()
      .default('')
      .describe('Asked of the web page and the API; required for any host but loopback.'),
    allowedHosts: texts().describe('Further host names under which a browser may reach the page.'),
    drainSecs: seconds(0, 300, 20).describe('Longest wait for running turns at a stop.'),
  }),
  coalesce: section({
    mode: choice(['wait', 'speculative'], 'wait').describe(
      'speculative: ask the model at once, again when a follower comes.',
    ),
    quietMs: count(0, 10_000, 400).describe('Quiet time after the last message.'),
    maxWaitMs: count(0, 60_000, 3000),
    maxMessages: count(1, 100, 20),
    continuationMs: count(0, 10_000, 1500).describe(
      'Wait after a part that fills the channel’s limit.',
    ),
  }),
  queue: section({
    mode: choice(['steer', 'followup'], 'steer').describe(
      'steer: messages join the running turn; followup: they wait for the next.',
    ),
    maxPendingPerChat: count(1, 10_000, 200),
    maxPending: count(1, 1_000_000, 10_000),
  }),
  edits: section({
    afterAnswer: choice(['offer', 'edit', 'ignore'], 'offer').describe(
      'A message is changed after its answer. offer: asks whether to answer again; edit: ' +
        'answers the newest one again by itself, without doing anything, in place of the answer.',
    ),
  }),
  limits: limitsSchema.prefault({}),
  notices: noticesSchema.prefault({}),
  cron: cronSchema.prefault({}),
  heartbeat: heartbeatSchema.prefault({}),
  quietHours: quietHoursSchema,
  models: modelsSchema.prefault({}),
  modelCapabilities: modelCapabilitiesSchema,
  localModels: localModelsSchema,
  cluster: clusterSchema,
  sessions: sessionsSchema.prefault({}),
  tools: toolsSchema,
  mcpServers: mcpServersSchema,
  memory: memorySchema.prefault({}),
  retry: section({
    providerMinSecs: seconds(0, 60, 1),
    providerMaxSecs: seconds(0, 600, 30),
    providerAttempts: count(0, 10, 3).describe('Retries after the first try.'),
  }),
  timeouts: section({
    firstTokenSecs: seconds(1, 3600, 90),
    streamIdleSecs: seconds(1, 3600, 60),
    modelCallSecs: seconds(1, 7200, 600),
  }),
  media: section({
    maxBytes: count(1_000_000, 10_000_000_000_000, 2_000_000_000).describe(
      'Files that came and went, all together; the longest unused make room.',
    ),
    maxFileBytes: count(1000, 2_000_000_000, 25_000_000).describe(
      'Largest file that is taken in or sent; a door may allow less.',
    ),
    keepDays: count(1, 3650, 30).describe('Days an unused file is kept.'),
    images: flag(true).describe(
      'Images go to the model’s vendor, where the model sees; false: to none.',
    ),
    visionModels: modelNames('Models that see images although their name does not tell.'),
    blindModels: modelNames('Models that see no images although their name tells otherwise.'),
    maxInlineChars: count(0, 100_000, 8000).describe(
      'Of a document, shown with its message; read_document reads on.',
    ),
  }),
  voice: voiceSchema,
  telemetry: telemetrySection,
  logging: section({
    level: choice(['debug', 'info', 'warn', 'error'], 'info'),
    keepDays: count(1, 3650, 14),
    stdout: flag(false).describe(
      'The gateway also writes its log to standard output, a JSON object per line, unless that is a terminal.',
    ),
  }),
});

type WithSettings = {
  readonly name: string;
  readonly settings?: { readonly at: string; readonly schema: z.ZodType };
};
const brought = FEATURES.flatMap((feature: WithSettings) => feature.settings ?? []);

/** With the sections that features bring themselves, which they read by themselves. */
export const configSchema = kernelSchema.extend(
  Object.fromEntries(brought.map(({ at, schema }) => [at, schema])) as Record<never, z.ZodType>,
);

/** A complete configuration: every default filled in, every `${NAME}` resolved. */
export type Config = z.infer<typeof kernelSchema>;
/** What a person writes: any part may be left out. */
export type ConfigInput = z.input<typeof kernelSchema>;

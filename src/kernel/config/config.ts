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
import { providersSchema } from '../../providers/settings.ts';
import { telemetrySection } from '../observe/settings.ts';
import { limitsSchema, memorySchema, modelsSchema, sessionsSchema } from './limits.ts';
import { count, seconds, secret } from './settings-fields.ts';
import { toolsSchema } from './tools.ts';

export { PROVIDER_NAMES, type ProviderName } from '../../providers/settings.ts';
export { TOOL_NAMES } from './tools.ts';

export const CONFIG_VERSION = 1;

const agentDefaults = z.strictObject({
  workspace: z
    .string()
    .default('')
    .describe('Folder the agent may read and write; empty: workspace/ in the home.'),
  model: z
    .string()
    .default('')
    .describe('e.g. anthropic/claude-opus-4-5; empty: found from keys and local servers.'),
  fallbackModels: z
    .array(z.string())
    .default([])
    .describe('Tried in order when the model fails; see agents.circuit.'),
  fastModel: z
    .string()
    .default('')
    .describe(
      'For side work: summaries, checks, titles; empty: a cheaper one of the same vendor. What a model on ' +
        'one’s own machine was told goes to no service.',
    ),
  maxTokens: count(1, 1_000_000)
    .default(4096)
    .describe('Longest answer of one model call, tokens.'),
  temperature: z.number().min(0).max(2).default(0.7),
  thinkingBudget: count(0, 128_000)
    .default(0)
    .describe('Tokens to think; 0 = off. /think changes it.'),
  maxToolIterations: count(1, 200).default(20).describe('Model calls of one turn.'),
  maxContextTokens: count(2048, 10_000_000).default(128_000),
  compaction: compactionSchema.prefault({}),
  finalAnswer: z
    .enum(['inline', 'separate'])
    .default('inline')
    .describe(
      'separate: after work with tools the answer is written by one more call, without tools, over ' +
        'all results; what the model says while it works is not sent.',
    ),
  claimCheck: z
    .boolean()
    .default(true)
    .describe('An answer that says something was done which no tool did is asked for once more.'),
  maxConcurrentChats: count(1, 10_000).default(16).describe('Turns that ask the model at once.'),
  maxSameToolCallPerTurn: count(1, 100)
    .default(3)
    .describe('Identical calls, with one and the same result, of a tool that changes something.'),
  maxToolResultChars: count(200, 1_000_000)
    .default(10_000)
    .describe('Longest result of a tool that is shown whole; of a longer one a briefing is shown.'),
  clearing: z
    .strictObject({
      aboveTokens: count(1000, 10_000_000)
        .default(100_000)
        .describe('From this size of a call on, the oldest results of tools are cleared from it.'),
      abovePercent: count(10, 95)
        .default(66)
        .describe('The same, as a part of the model’s context; the smaller of the two counts.'),
      keepNewest: count(0, 100).default(5).describe('Newest results that always stay.'),
    })
    .prefault({}),
  maxTurnSecs: seconds(1, 3600).default(600).describe('Wall time of one turn.'),
  maxTurnTokens: count(1000, 100_000_000)
    .default(1_000_000)
    .describe('Tokens, in and out, of one turn over all its calls.'),
});

const modelNames = (description: string) =>
  z.array(z.string()).max(100).default([]).describe(`${description} E.g. ollama/my-model.`);

export const configSchema = z.strictObject({
  $schema: z.string().optional().describe('For editors; has no effect.'),
  version: z.literal(CONFIG_VERSION).default(CONFIG_VERSION),
  agents: z
    .strictObject({
      defaults: agentDefaults.prefault({}),
      subagents: subagentsSchema,
      workflows: workflowsSchema,
      voting: votingSchema,
      calibration: calibrationSchema,
      ...modeFields,
      ...steadinessFields,
    })
    .prefault({}),
  providers: providersSchema.prefault({}),
  channels: z
    .strictObject({
      telegram: telegramSchema.prefault({}),
      email: emailSchema.prefault({}),
      whatsapp: whatsappSchema.prefault({}),
      lark: larkSchema.prefault({}),
    })
    .prefault({}),
  gateway: z
    .strictObject({
      host: z.string().default('127.0.0.1'),
      port: z.int().min(0).max(65_535).default(18_790).describe('0: any free port.'),
      token: secret()
        .default('')
        .describe('Asked of the web page and the API; required for any host but loopback.'),
      allowedHosts: z
        .array(z.string())
        .default([])
        .describe('Further host names under which a browser may reach the page.'),
      drainSecs: seconds(0, 300).default(20).describe('Longest wait for running turns at a stop.'),
    })
    .prefault({}),
  coalesce: z
    .strictObject({
      mode: z
        .enum(['wait', 'speculative'])
        .default('wait')
        .describe('speculative: ask the model at once, again when a follower comes.'),
      quietMs: count(0, 10_000).default(400).describe('Quiet time after the last message.'),
      maxWaitMs: count(0, 60_000).default(3000),
      maxMessages: count(1, 100).default(20),
      continuationMs: count(0, 10_000)
        .default(1500)
        .describe('Wait after a part that fills the channel’s limit.'),
    })
    .prefault({}),
  queue: z
    .strictObject({
      mode: z
        .enum(['steer', 'followup'])
        .default('steer')
        .describe('steer: messages join the running turn; followup: they wait for the next.'),
      maxPendingPerChat: count(1, 10_000).default(200),
      maxPending: count(1, 1_000_000).default(10_000),
    })
    .prefault({}),
  edits: z
    .strictObject({
      afterAnswer: z
        .enum(['offer', 'edit', 'ignore'])
        .default('offer')
        .describe(
          'A message is changed after its answer. offer: asks whether to answer again; edit: ' +
            'answers the newest one again by itself, without doing anything, in place of the answer.',
        ),
    })
    .prefault({}),
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
  retry: z
    .strictObject({
      providerMinSecs: seconds(0, 60).default(1),
      providerMaxSecs: seconds(0, 600).default(30),
      providerAttempts: count(0, 10).default(3).describe('Retries after the first try.'),
    })
    .prefault({}),
  timeouts: z
    .strictObject({
      firstTokenSecs: seconds(1, 3600).default(90),
      streamIdleSecs: seconds(1, 3600).default(60),
      modelCallSecs: seconds(1, 7200).default(600),
    })
    .prefault({}),
  media: z
    .strictObject({
      maxBytes: count(1_000_000, 10_000_000_000_000)
        .default(2_000_000_000)
        .describe('Files that came and went, all together; the longest unused make room.'),
      maxFileBytes: count(1000, 2_000_000_000)
        .default(25_000_000)
        .describe('Largest file that is taken in or sent; a door may allow less.'),
      keepDays: count(1, 3650).default(30).describe('Days an unused file is kept.'),
      images: z
        .boolean()
        .default(true)
        .describe('Images go to the model’s vendor, where the model sees; false: to none.'),
      visionModels: modelNames('Models that see images although their name does not tell.'),
      blindModels: modelNames('Models that see no images although their name tells otherwise.'),
      maxInlineChars: count(0, 100_000)
        .default(8000)
        .describe('Of a document, shown with its message; read_document reads on.'),
    })
    .prefault({}),
  voice: voiceSchema,
  telemetry: telemetrySection,
  logging: z
    .strictObject({
      level: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
      keepDays: count(1, 3650).default(14),
      stdout: z
        .boolean()
        .default(false)
        .describe(
          'The gateway also writes its log to standard output, a JSON object per line, unless that is a terminal.',
        ),
    })
    .prefault({}),
});

/** A complete configuration: every default filled in, every `${NAME}` resolved. */
export type Config = z.infer<typeof configSchema>;
/** What a person writes: any part may be left out. */
export type ConfigInput = z.input<typeof configSchema>;

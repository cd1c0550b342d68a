// What the HTTP API answers and takes about the settings of a chat; the page has its types from here.

import { z } from 'zod';

const MAX_MODEL_CHARS = 200;
const MAX_THINKING_TOKENS = 128_000;

const modes = z.enum(['inline', 'delegated', 'trio', 'supervisor']);
const policies = z.enum(['open', 'normal', 'strict']);
const tokens = z.number().describe('Tokens for thinking; 0: off.');

export const chatSettings = z.object({
  model: z.string().exactOptional().describe('Absent: the default.'),
  defaultModel: z.string(),
  thinking: tokens.exactOptional(),
  defaultThinking: tokens,
  mode: modes.exactOptional(),
  defaultMode: modes,
  modes: z.array(
    z.object({ name: modes, problems: z.array(z.string()).describe('Why it cannot work yet.') }),
  ),
  hears: z.boolean().describe('Whether voice messages are transcribed.'),
  approvals: policies
    .exactOptional()
    .describe('Of the owner, in all chats; absent: as configured.'),
});
export const changedChatSettings = z
  .strictObject({
    model: z.string().trim().min(1).max(MAX_MODEL_CHARS).describe('Or "default".'),
    thinking: z.union([z.literal('default'), z.int().min(0).max(MAX_THINKING_TOKENS)]),
    mode: z.union([z.literal('default'), modes]),
    approvals: z.union([z.literal('auto'), policies]),
  })
  .partial();
export const modelNames = z.object({
  models: z.array(z.string()).describe('That can be used without further setup; others may exist.'),
});
export const commandFacts = z.object({
  commands: z.array(
    z.object({ name: z.string(), summary: z.string(), usage: z.string().exactOptional() }),
  ),
});

export type ChatSettings = z.output<typeof chatSettings>;
export type ChangedChatSettings = z.output<typeof changedChatSettings>;
export type ModelNames = z.output<typeof modelNames>;
export type CommandFacts = z.output<typeof commandFacts>;

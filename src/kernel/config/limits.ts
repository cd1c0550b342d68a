// The limits' part of the configuration: messages, and what may be spent on models in a day.

import { z } from 'zod';
import { choice, count, flag, section, text } from './settings-fields.ts';

const MOST_MESSAGES = 1_000_000;
const MOST_TOKENS = 1_000_000_000_000;
const MOST_MONEY = 1_000_000_000;

const messageCount = (usual: number) => count(0, MOST_MESSAGES, usual);
const tokenLimit = () => count(0, MOST_TOKENS, 0);
const money = () => z.number().min(0).max(MOST_MONEY);
const moneyLimit = () => money().default(0);

const messages = z.strictObject({
  perMinute: messageCount(20).describe(
    'Messages of one person in any minute; owners ten times as many; 0: no limit.',
  ),
  perDay: messageCount(200).describe(
    'Messages of one person in a day; owners ten times as many; 0: no limit.',
  ),
  groupPerMinute: messageCount(30).describe(
    'Messages to the agent in one group in any minute, of all members but owners.',
  ),
  groupPerDay: messageCount(500).describe('The same in a day.'),
});

const budget = z.strictObject({
  perPersonTokensPerDay: tokenLimit().describe(
    'Tokens, in and out, that one person’s turns may take in a day; 0: no limit.',
  ),
  perChatTokensPerDay: tokenLimit().describe('The same for one conversation.'),
  perJobTokensPerDay: tokenLimit().describe('The same for one scheduled job.'),
  totalTokensPerDay: tokenLimit().describe('The same for all together.'),
  perPersonMoneyPerDay: moneyLimit().describe(
    'Money that one person’s turns may cost in a day; 0: no limit.',
  ),
  perChatMoneyPerDay: moneyLimit().describe('The same for one conversation.'),
  perJobMoneyPerDay: moneyLimit().describe('The same for one scheduled job.'),
  totalMoneyPerDay: moneyLimit().describe('The same for all together.'),
  currency: z
    .string()
    .min(1)
    .max(8)
    .default('USD')
    .describe('Of all money here; for another one write all prices in models.prices.'),
  unpriced: z
    .union([z.literal('refuse'), z.strictObject({ input: money(), output: money() })])
    .optional()
    .describe(
      'Where a budget in money counts, what a cloud model is charged for whose price nobody knows, ' +
        'in money per million tokens; refuse: it is not asked. Left out: in USD twice the dearest ' +
        'price that is known, in another currency refuse.',
    ),
});

const exception = z.strictObject({
  who: z
    .string()
    .describe('A channel, or channel:id with the stable id of a person or a group there.'),
  perMinute: count(0, MOST_MESSAGES).optional(),
  perDay: count(0, MOST_MESSAGES).optional(),
  tokensPerDay: count(0, MOST_TOKENS).optional(),
  moneyPerDay: money().optional(),
});

const answers = z.strictObject({
  maxChars: count(0, 10_000_000, 40_000).describe(
    'Longest answer that is sent as text, characters of Markdown; the rest goes along as a file. 0: all ' +
      'of it is sent as text.',
  ),
});

export const limitsSchema = z.strictObject({
  messages: messages.prefault({}),
  answers: answers.prefault({}),
  budget: budget.prefault({}),
  exceptions: z
    .array(exception)
    .default([])
    .describe('Other limits for a channel, a person or a group; the most exact one counts.'),
});

const price = z.strictObject({
  model: z.string().min(1),
  input: money(),
  output: money(),
  cached: money(),
  written: money()
    .optional()
    .describe('For what is written to the cache of the vendor, where that is dearer.'),
});

export const modelsSchema = z.strictObject({
  prices: z
    .array(price)
    .default([])
    .describe('Money per million tokens of models whose price is not known, or is another.'),
});

export type LimitsConfig = z.infer<typeof limitsSchema>;

// The `sessions` and `memory` sections of the configuration.

export const sessionsSchema = z.strictObject({
  rotationSizeBytes: count(10_000, 1_000_000_000, 1_000_000),
  rotationTokens: count(1000, 100_000_000, 200_000),
  carry: choice(['recent', 'nothing'], 'recent').describe(
    'What a new file opens with: the summary and last messages, or nothing.',
  ),
  rotationCarryMessages: count(0, 1000, 10),
  keepWorkDays: count(1, 3650, 30).describe(
    'Days that files of conversations of helpers and jobs are kept.',
  ),
  recordPrompts: flag(true).describe(
    'Keeps what models were asked with, so that turns can be played again as they were.',
  ),
  timeZone: text().describe('IANA zone whose midnight starts a new file; empty: the machine’s.'),
});

export const memorySchema = z.strictObject({
  enabled: flag(true).describe('remember, recall and MEMORY.md in the prompt.'),
  reflection: section({
    everyHours: count(0, 8760, 0).describe(
      'How often the owners’ memory is thought over by itself; 0: never.',
    ),
    apply: choice(['ask', 'write'], 'ask').describe(
      'An owner sees what would change and says yes; or it is written at once.',
    ),
  }),
});

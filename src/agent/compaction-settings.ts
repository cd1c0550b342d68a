// Configuration of when a long conversation is summarised.

import { z } from 'zod';
import { choice, count, flag } from '../kernel/config/settings-fields.ts';

export const COMPACTION_ENGINES = ['summary', 'lossless'] as const;

export type CompactionEngine = (typeof COMPACTION_ENGINES)[number];

const percent = () => z.number().min(10).max(95);
const lossless = z.strictObject({
  softPercent: percent()
    .default(50)
    .describe(
      'Percentage of the context window above which the conversation is summarised after an answer.',
    ),
  hardPercent: percent()
    .default(85)
    .describe('Percentage above which the next call waits for the summary.'),
  keepMessages: count(1, 100, 4).describe('Newest messages that stay unchanged.'),
});

export const compactionSchema = z.strictObject({
  enabled: flag(true).describe(
    'Summarise long conversations with the background model. false: leave out the oldest messages.',
  ),
  watermarkPercent: percent()
    .default(66)
    .describe(
      'Percentage of the context window that a call may use before its conversation is summarised.',
    ),
  watermarkTokens: count(1000, 10_000_000, 100_000).describe(
    'The same in tokens; the smaller limit applies.',
  ),
  keepTokens: count(0, 1_000_000, 20_000).describe(
    'Tokens of the newest exchanges that stay unchanged.',
  ),
  summaryTokens: count(200, 20_000, 2000).describe('Longest summary in tokens.'),
  engine: choice(COMPACTION_ENGINES, 'summary').describe(
    'summary: one text replaces earlier messages. lossless: nodes that the model can expand to the ' +
      'messages behind them. /compact engine changes it for one conversation.',
  ),
  lossless: lossless.prefault({}),
});

export type CompactionConfig = z.output<typeof compactionSchema>;

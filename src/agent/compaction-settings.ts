// The part of the configuration that says when a long conversation is summed up.

import { z } from 'zod';
import { choice, count, flag } from '../kernel/config/settings-fields.ts';
import { COMPACTION_ENGINES } from './rules/compaction.ts';

const percent = () => z.number().min(10).max(95);
const lossless = z.strictObject({
  softPercent: percent()
    .default(50)
    .describe(
      'Part of the context window above which a conversation is summed up behind the answer.',
    ),
  hardPercent: percent()
    .default(85)
    .describe('The same above which the next call waits until that is done.'),
  keepMessages: count(1, 100, 4).describe('Newest messages that stay word by word.'),
});

export const compactionSchema = z.strictObject({
  enabled: flag(true).describe(
    'Long conversations are summed up by a cheap model; false: the oldest is left out.',
  ),
  watermarkPercent: z
    .number()
    .min(10)
    .max(95)
    .default(66)
    .describe(
      'Part of the context window that a call may take before its conversation is summed up.',
    ),
  watermarkTokens: count(1000, 10_000_000, 100_000).describe(
    'The same in tokens; whichever is less.',
  ),
  keepTokens: count(0, 1_000_000, 20_000).describe(
    'Of the newest exchanges, tokens that stay word by word.',
  ),
  summaryTokens: count(200, 20_000, 2000).describe('Longest summary.'),
  engine: choice(COMPACTION_ENGINES, 'summary').describe(
    'summary: one text stands for what came before. lossless: nodes, each of which can be expanded ' +
      'to the messages it stands for. /compact engine changes it for one conversation.',
  ),
  lossless: lossless.prefault({}),
});

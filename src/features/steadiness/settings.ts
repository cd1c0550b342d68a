// The part of the configuration about keeping a model on its course: what small models on one's own
// machine are kept from, and what any model is told of its own work.

import { z } from 'zod';
import { choice, count, flag, section } from '../../kernel/config/settings-fields.ts';

export const antiDriftSchema = section({
  enabled: choice(['off', 'auto', 'on'], 'off').describe(
    'auto: for small and medium models of local servers; on: for all of these.',
  ),
  anchorInterval: count(0, 100, 3).describe(
    'Rounds of tool use between reminders of the form of answers; 0: none.',
  ),
  pollutionThreshold: z
    .number()
    .min(0.2)
    .max(1)
    .default(0.6)
    .describe('From this score on, an earlier answer is left out of what the model is shown.'),
  babbleWords: count(20, 10_000, 150).describe(
    'Longer prose counts as babble where it says little new; its length alone never.',
  ),
  repetitionMinCount: count(2, 50, 3).describe(
    'From so many answers in nearly the same words on, the first stands for them.',
  ),
  loopRepeats: count(0, 1000, 40).describe(
    'An answer is cut off where one passage follows itself so many times; of code, tables and ' +
      'figures ten times as many. 0: never.',
  ),
}).describe('Against junk of small local models that would be copied in their next answers.');

export const proprioceptionSchema = section({
  enabled: flag(false).describe('Switches on what is chosen below.'),
  groundingInterval: count(0, 200, 8).describe(
    'Rounds between notes on the state of the work, twice in a full window; 0: none.',
  ),
  dynamicToolScoping: flag(false).describe(
    'Local models: tools that the work at hand hardly needs are named in short only.',
  ),
  audienceAwareCompaction: flag(false).describe(
    'Summaries are written for the size of the model that reads them.',
  ),
  gradientMemory: flag(false).describe('Earlier turns are shown shorter the older they are.'),
  rawWindow: count(1, 100, 5).describe('Newest turns that are shown as they are.'),
  lightWindow: count(1, 1000, 20).describe(
    'Turns of which long texts are shortened; of older ones little more is left.',
  ),
  ahaChannel: flag(true).describe(
    'What a helper at work finds critical reaches the turn that asked at once.',
  ),
});

export const steadinessFields = {
  antiDrift: antiDriftSchema,
  proprioception: proprioceptionSchema,
};

export type AntiDriftConfig = z.infer<typeof antiDriftSchema>;
export type ProprioceptionConfig = z.infer<typeof proprioceptionSchema>;

// Configuration of steadiness: what keeps small local models from drifting, and which notes about
// its own work a model gets.

import { z } from 'zod';
import { choice, count, flag, section } from '../../kernel/config/settings-fields.ts';

export const antiDriftSchema = section({
  enabled: choice(['off', 'auto', 'on'], 'off').describe(
    'auto: for small and medium models on local servers; on: for all models on local servers.',
  ),
  anchorInterval: count(0, 100, 3).describe(
    'Rounds of tool use between reminders of the answer format. 0: none.',
  ),
  pollutionThreshold: z
    .number()
    .min(0.2)
    .max(1)
    .default(0.6)
    .describe('Score from which an earlier answer is hidden from the model.'),
  babbleWords: count(20, 10_000, 150).describe(
    'Longer text counts as rambling if it says little new; never by its length alone.',
  ),
  repetitionMinCount: count(2, 50, 3).describe(
    'Number of nearly identical answers from which only the first is shown to the model.',
  ),
  loopRepeats: count(0, 1000, 40).describe(
    'Cut off an answer after this many repetitions of one passage; ten times as many for code, tables ' +
      'and figures. 0: never.',
  ),
}).describe('Hide bad answers of small local models, so that they do not copy them.');

export const proprioceptionSchema = section({
  enabled: flag(false).describe('Enable the functions chosen below.'),
  groundingInterval: count(0, 200, 8).describe(
    'Rounds between notes on the state of the work; twice as often in a full window. 0: none.',
  ),
  dynamicToolScoping: flag(false).describe(
    'Local models: shorten the descriptions of tools that the task hardly needs.',
  ),
  audienceAwareCompaction: flag(false).describe(
    'Write summaries for the size of the model that reads them.',
  ),
  gradientMemory: flag(false).describe('Shorten earlier turns more the older they are.'),
  rawWindow: count(1, 100, 5).describe('Newest turns that stay unchanged.'),
  lightWindow: count(1, 1000, 20).describe(
    'Turns whose long texts are shortened; older turns keep little more than a line.',
  ),
  ahaChannel: flag(true).describe(
    'Pass critical findings of a running subagent to the turn that started it at once.',
  ),
});

export const steadinessFields = {
  antiDrift: antiDriftSchema,
  proprioception: proprioceptionSchema,
};

export type AntiDriftConfig = z.infer<typeof antiDriftSchema>;
export type ProprioceptionConfig = z.infer<typeof proprioceptionSchema>;

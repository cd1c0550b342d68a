// The part of the configuration about helpers: turns that a turn of the agent starts.

import { z } from 'zod';
import { count, flag, section, text } from '../../kernel/config/settings-fields.ts';
import { USUAL_GATE, USUAL_MAX_FLAGGED } from './rules/vote.ts';

export const subagentsSchema = section({
  enabled: flag(true).describe('The agent may start helpers.'),
  maxDepth: count(1, 3, 1).describe(
    '1: helpers start none; 2: they may start helpers, which start none.',
  ),
  maxPerParent: count(1, 50, 5).describe('Helpers of one conversation at a time.'),
  maxRunning: count(1, 200, 8).describe('Helpers of all conversations at a time.'),
  minutes: count(1, 1440, 15).describe('Wall time of one helper, after a restart too.'),
  tokens: count(1000, 100_000_000, 300_000).describe(
    'Tokens, in and out, of one helper over all its calls.',
  ),
  model: text().describe(
    'fast, default or a name; empty: the model of the conversation that asks.',
  ),
});

export type SubagentsConfig = z.infer<typeof subagentsSchema>;

// The part of the configuration about votes on steps, and about what is learnt from earlier helpers.

const share = (usual: number, about: string) =>
  z.number().min(0).max(1).default(usual).describe(about);

export const votingSchema = section({
  gate: flag(false).describe('Pilot voters are asked first; where they agree, nobody else is.'),
  pilotVoters: count(2, 5, USUAL_GATE.voters),
  maxEntropy: z
    .number()
    .min(0)
    .max(3)
    .default(USUAL_GATE.maxEntropy)
    .describe('In bits; the pilot voters’ answers are accepted below it only.'),
  minMargin: share(USUAL_GATE.minMargin, 'Of the pilot voters: the lead as a part of the votes.'),
  minConfidence: share(USUAL_GATE.minConfidence, 'Of the pilot voters: how many say the same.'),
  maxFlagged: share(
    USUAL_MAX_FLAGGED,
    'Nothing is won while more of the answers than this part are empty, too long or malformed.',
  ),
  maxAnswerChars: count(20, 100_000, 2000).describe('A longer answer is no vote.'),
  temperature: z.number().min(0).max(2).default(0.7).describe('Of voters in workflows.'),
});

export const calibrationSchema = section({
  enabled: flag(false).describe('Limits of helpers go by what helpers of their kind took before.'),
  minConfidence: share(0.5, 'Advice below it is not followed; 0.5 needs four helpers of a kind.'),
  keep: count(10, 1000, 200).describe('Runs kept for each kind of task and model.'),
});

export type VotingConfig = z.infer<typeof votingSchema>;
export type CalibrationConfig = z.infer<typeof calibrationSchema>;

// The part of the configuration about votes on steps, and about what is learnt from earlier helpers.

import { z } from 'zod';
import { USUAL_GATE, USUAL_MAX_FLAGGED } from '../vote.ts';
import { count } from './fields.ts';

const share = (usual: number, about: string) =>
  z.number().min(0).max(1).default(usual).describe(about);

export const votingSchema = z
  .strictObject({
    gate: z
      .boolean()
      .default(false)
      .describe('Pilot voters are asked first; where they agree, nobody else is.'),
    pilotVoters: count(2, 5).default(USUAL_GATE.voters),
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
    maxAnswerChars: count(20, 100_000).default(2000).describe('A longer answer is no vote.'),
    temperature: z.number().min(0).max(2).default(0.7).describe('Of voters in workflows.'),
  })
  .prefault({});

export const calibrationSchema = z
  .strictObject({
    enabled: z
      .boolean()
      .default(false)
      .describe('Limits of helpers go by what helpers of their kind took before.'),
    minConfidence: share(0.5, 'Advice below it is not followed; 0.5 needs four helpers of a kind.'),
    keep: count(10, 1000).default(200).describe('Runs kept for each kind of task and model.'),
  })
  .prefault({});

export type VotingConfig = z.infer<typeof votingSchema>;
export type CalibrationConfig = z.infer<typeof calibrationSchema>;

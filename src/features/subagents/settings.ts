// Configuration of subagents: turns that a turn of the agent starts.

import { z } from 'zod';
import { count, flag, section, text } from '../../kernel/config/settings-fields.ts';
import { t } from '../../lib/texts.ts';

/** Relative to the workspace; writing there needs the right `rules`. */
export const PROFILES_FOLDER = 'profiles';

/** All three have to hold for the ballots of the pilot voters. */
export type Gate = {
  readonly voters: number;
  /** Upper limit, in bits. */
  readonly maxEntropy: number;
  /** The lead as a share of the votes. */
  readonly minMargin: number;
  /** Votes for the leader as a share of all ballots, including flagged ones. */
  readonly minConfidence: number;
};

/** Two voters that agree suffice. */
export const USUAL_GATE: Gate = { voters: 2, maxEntropy: 0.3, minMargin: 0.5, minConfidence: 0.8 };

export const USUAL_MAX_FLAGGED = 0.5;

export const subagentsSchema = section({
  enabled: flag(true).describe('Allow the agent to start subagents.'),
  maxDepth: count(1, 3, 1).describe(
    '1: subagents start none; 2: subagents may start subagents, which start none.',
  ),
  maxPerParent: count(1, 50, 5).describe('Most subagents of one conversation at the same time.'),
  maxRunning: count(1, 200, 8).describe('Most subagents of all conversations at the same time.'),
  minutes: count(1, 1440, 15).describe('Longest run of one subagent, including restarts.'),
  tokens: count(1000, 100_000_000, 300_000).describe(
    'Most tokens, in and out, for all model calls of one subagent.',
  ),
  model: text().describe(
    'fast, default or the name of a model. Empty: the model of the conversation.',
  ),
});

export type SubagentsConfig = z.infer<typeof subagentsSchema>;

// Configuration of votes on steps, and of limits derived from earlier subagents.

const upTo = (most: number, usual: number, about: string) =>
  z.number().min(0).max(most).default(usual).describe(about);
const share = (usual: number, about: string) => upTo(1, usual, about);

export const votingSchema = section({
  gate: flag(false).describe('Ask pilot voters first; if they agree, ask nobody else.'),
  pilotVoters: count(2, 5, USUAL_GATE.voters).describe(
    'Votes of the trial that decides whether more are asked for.',
  ),
  maxEntropy: upTo(
    3,
    USUAL_GATE.maxEntropy,
    t`Entropy in bits below which the pilot voters’ answer is accepted.`,
  ),
  minMargin: share(
    USUAL_GATE.minMargin,
    t`Lead that the pilot voters’ answer needs, as a share of their votes.`,
  ),
  minConfidence: share(USUAL_GATE.minConfidence, t`Share of the pilot voters that must agree.`),
  maxFlagged: share(
    USUAL_MAX_FLAGGED,
    t`No answer wins while a larger share than this is empty, too long or malformed.`,
  ),
  maxAnswerChars: count(20, 100_000, 2000).describe(
    'Longest answer in characters; a longer one is not counted.',
  ),
  temperature: upTo(2, 0.7, t`Temperature of voters in workflows.`),
});

export const calibrationSchema = section({
  enabled: flag(false).describe(
    'Set the limits of subagents by what earlier subagents of their kind needed.',
  ),
  minConfidence: share(
    0.5,
    t`Ignore estimates below this confidence; 0.5 needs four subagents of a kind.`,
  ),
  keep: count(10, 1000, 200).describe('Runs to keep for each kind of task and model.'),
});

export type VotingConfig = z.infer<typeof votingSchema>;
export type CalibrationConfig = z.infer<typeof calibrationSchema>;

// How a vote is held, as it is configured.

import type { VotingConfig } from '../settings.ts';
import { usualMost, type VoteTerms } from './vote.ts';

/** Of a vote that an answer wins by a lead of `aheadBy`. */
export function voteTermsOf(config: VotingConfig, aheadBy: number): VoteTerms {
  const { gate, maxEntropy, minMargin, minConfidence, maxFlagged } = config;
  const voters = config.pilotVoters;
  const accepting = gate ? { gate: { voters, maxEntropy, minMargin, minConfidence } } : {};
  return { aheadBy, most: Math.max(usualMost(aheadBy), voters), maxFlagged, ...accepting };
}

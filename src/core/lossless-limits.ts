// How much lossless compaction makes one node of, and how much of all nodes is shown, from the size of the
// model's window.

import { type CompactionPolicy, type ConversationSize, keptTokens } from './compaction.ts';

export type LosslessLimits = {
  readonly keepTokens: number;
  readonly keepMessages: number;
  /** Messages that become one node, together. */
  readonly leafTokens: number;
  /** Less than this is not worth a node. */
  readonly minTokens: number;
  /** Texts of all nodes in view, together. */
  readonly nodesTokens: number;
};

const [MIN_LEAF_TOKENS, MAX_LEAF_TOKENS] = [500, 8192];
const NODES_SHARE = 0.45;
const MIN_WORTH_TOKENS = 100;

/** `readTokens`: what the model that sums up can read at once. */
export function losslessLimits(
  policy: CompactionPolicy,
  size: ConversationSize,
  readTokens: number,
  keepTokens?: number,
): LosslessLimits {
  // All that was said since the last step: a step of its own for each turn would be a call for each.
  const since = Math.max(MIN_LEAF_TOKENS, size.roomTokens);
  const leafTokens = Math.floor(Math.min(since, MAX_LEAF_TOKENS, readTokens));
  return {
    keepTokens: keepTokens ?? keptTokens(policy, size),
    keepMessages: policy.lossless.keepMessages,
    leafTokens,
    // Who asked for it wants what little there is summed up as well.
    minTokens:
      keepTokens === undefined ? Math.max(MIN_WORTH_TOKENS, leafTokens / 4) : MIN_WORTH_TOKENS,
    nodesTokens: Math.floor(Math.min(size.roomTokens * NODES_SHARE, 4 * policy.summaryTokens)),
  };
}

// How much lossless compaction makes one node of, and how much of all nodes is shown, from the size of the
// model's window.

import { type CompactionPolicy, type CompactionSize, keptTokens } from './compaction.ts';

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

const LEAF_SHARE = 1 / 16;
const [MIN_LEAF_TOKENS, MAX_LEAF_TOKENS] = [500, 8192];
const NODES_SHARE = 1 / 5;
const MIN_WORTH_TOKENS = 100;

/** `readTokens`: what the model that sums up can read at once. */
export function losslessLimits(
  policy: CompactionPolicy,
  size: CompactionSize,
  readTokens: number,
  keepTokens?: number,
): LosslessLimits {
  const share = Math.max(MIN_LEAF_TOKENS, size.contextTokens * LEAF_SHARE);
  const leafTokens = Math.floor(Math.min(share, MAX_LEAF_TOKENS, readTokens));
  return {
    keepTokens: keepTokens ?? keptTokens(policy, size),
    keepMessages: policy.lossless.keepMessages,
    leafTokens,
    // Who asked for it wants what little there is summed up as well.
    minTokens:
      keepTokens === undefined ? Math.max(MIN_WORTH_TOKENS, leafTokens / 4) : MIN_WORTH_TOKENS,
    nodesTokens: Math.floor(Math.min(size.contextTokens * NODES_SHARE, 4 * policy.summaryTokens)),
  };
}

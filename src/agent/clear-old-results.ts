// Decides when results of tools are cleared from what the model is shown: where a call grows beyond its
// threshold, and then as many as give room for a while.

import { expectedTokens, type ModelCall } from './model-call.ts';
import { watermarkTokens } from './rules/compaction.ts';
import type { TurnContext } from './turn-context.ts';

/** What a call should take after clearing, as a part of the threshold. */
const TARGET_SHARE = 0.6;
/** Less of the threshold than this is not worth a broken prompt cache. */
const WORTH_SHARE = 0.1;
/** Of the room for the conversation, what the newest results keep. */
const KEPT_SHARE = 0.3;
const PERCENT = 100;

/** Whether anything was cleared: the call has to be put together anew. */
export function clearOldResults(turn: TurnContext, call: ModelCall): boolean {
  const { aboveTokens, abovePercent, keepNewest } = turn.settings.clearing;
  const share = (call.contextTokens * abovePercent) / PERCENT;
  // Before a summary is asked for: a result can be read again, and is most of what has no room.
  const mark = watermarkTokens(turn.settings.compaction, call);
  const threshold = Math.min(aboveTokens, share, mark);
  const expected = expectedTokens(turn, call);
  if (expected <= threshold) return false;
  // The thread counts in estimates; what they are off by is known per model.
  const factor = turn.correction.factor(call.handle.name);
  const cleared = turn.thread.clear({
    excessTokens: (expected - threshold * TARGET_SHARE) / factor,
    worthTokens: (threshold * WORTH_SHARE) / factor,
    keepNewest,
    keepTokens: Math.max(0, mark / factor - call.fixedTokens) * KEPT_SHARE,
  });
  if (cleared > 0) turn.log.info('old results cleared', { results: cleared, tokens: expected });
  return cleared > 0;
}

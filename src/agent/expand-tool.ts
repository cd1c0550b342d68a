// The tool that expands nodes exists for a turn only where its conversation has some, or gets some.

import type { TranscriptEntry } from '../kernel/message/transcript.ts';
import type { Toolbox } from '../tools/tool.ts';
import { confinedTools } from './confines.ts';
import type { CompactionPolicy } from './rules/compaction.ts';
import { EXPAND } from './rules/context-marks.ts';
import { nodesInView } from './rules/summary-nodes-text.ts';

export function withExpand(
  toolbox: Toolbox,
  { enabled, engine }: CompactionPolicy,
  history: readonly TranscriptEntry[],
): Toolbox {
  const isUsed = (enabled && engine === 'lossless') || nodesInView(history).length > 0;
  return isUsed ? toolbox : confinedTools(toolbox, { mayUse: (name) => name !== EXPAND });
}

// The tool that expands nodes exists for a turn only where its conversation has some, or gets some.

import type { CompactionPolicy } from '../core/compaction.ts';
import { EXPAND } from '../core/context-marks.ts';
import { nodesInView } from '../core/summary-nodes.ts';
import type { TranscriptEntry } from '../core/transcript.ts';
import type { Toolbox } from '../tools/tool.ts';
import { confinedTools } from './confines.ts';

export function withExpand(
  toolbox: Toolbox,
  { enabled, engine }: CompactionPolicy,
  history: readonly TranscriptEntry[],
): Toolbox {
  const isUsed = (enabled && engine === 'lossless') || nodesInView(history).length > 0;
  return isUsed ? toolbox : confinedTools(toolbox, { mayUse: (name) => name !== EXPAND });
}

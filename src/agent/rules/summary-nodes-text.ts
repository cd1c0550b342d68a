// Nodes of lossless compaction: each stands for the turns of one stretch of a conversation, a summary
// entry holds those in view. What they stand for stays in the session's files and is found by its turns.

import { firstSeqOf } from '../../kernel/message/ids.ts';
import type {
  SummaryEntry,
  SummaryNode,
  TranscriptEntry,
} from '../../kernel/message/transcript.ts';

type TurnRange = Pick<SummaryNode, 'from' | 'before'>;

/** By the turns it stands for: the same after a restart, and no two in view share one. */
export const nodeId = ({ from, before }: TurnRange) => `t${from}-${before - 1}`;

const ID = /^\[?(?:node )?t(\d{1,15})-(\d{1,15})\]?$/i;

/** Undefined for what is no id of a node. */
export function rangeOfNode(id: string): TurnRange | undefined {
  const [, from, last] = ID.exec(id.trim()) ?? [];
  if (from === undefined || last === undefined || Number(last) < Number(from)) return undefined;
  return { from: Number(from), before: Number(last) + 1 };
}

export const isWithin = (inner: TurnRange, outer: TurnRange) =>
  inner.from >= outer.from && inner.before <= outer.before;

/** In their order; what a summary entry says where it holds nodes. */
export const textOfNodes = (nodes: readonly SummaryNode[]) =>
  nodes.map(({ text }) => text).join('\n\n');

/** The summary with other nodes, and what follows from them. */
export function withNodes(
  { isForeign: _, nodes: __, ...entry }: SummaryEntry,
  nodes: readonly SummaryNode[],
): SummaryEntry {
  const isForeign = nodes.some((node) => node.isForeign === true);
  return {
    ...entry,
    text: textOfNodes(nodes),
    nodes,
    ...(isForeign ? { isForeign: true as const } : {}),
  };
}

export const nodesInView = (window: readonly TranscriptEntry[]): readonly SummaryNode[] =>
  window.flatMap((entry) => (entry.role === 'summary' ? (entry.nodes ?? []) : []));

/**
 * The nodes of a summary; one of the other engine is a node of its own. `before`: the first turn that is
 * shown behind it.
 */
export function nodesOf(summary: SummaryEntry, before: number): readonly SummaryNode[] {
  if (summary.nodes !== undefined) return summary.nodes;
  const keeps = summary.keepsFrom === undefined ? undefined : firstSeqOf(summary.keepsFrom);
  const end = keeps ?? before;
  if (summary.text.trim() === '' || end < 1) return [];
  const { text, isForeign } = summary;
  const mark = isForeign === true ? { isForeign } : {};
  return [{ from: 0, before: end, level: 0, style: 'details', text, ...mark }];
}

/** By their turns, oldest first. */
export const inOrder = (nodes: readonly SummaryNode[]) =>
  nodes.toSorted((a, b) => a.from - b.from || a.before - b.before);

/** Whether no turn belongs to two of them; they are in order. */
export const areApart = (nodes: readonly SummaryNode[]) =>
  nodes.every((node, index) => (nodes[index - 1]?.before ?? 0) <= node.from);

/**
 * Turns in front of a node that leave the view there, e.g. because they were brought back into it, belong
 * to that node from now on; what lies behind all nodes is left as it is.
 */
export function withTurnsBefore(
  nodes: readonly SummaryNode[],
  turns: readonly number[],
): readonly SummaryNode[] {
  return nodes.map((node, index) => {
    const behind = nodes[index - 1]?.before ?? 0;
    const between = turns.filter((turn) => turn >= behind && turn < node.from);
    return between.length === 0 ? node : { ...node, from: Math.min(...between) };
  });
}

// What a node of lossless compaction is, as it stands in a session file. What is done with nodes is in
// core/summary-nodes.ts.

export const NODE_STYLES = ['details', 'points', 'cut'] as const;
/** How its text was made: by a model that keeps details, by one that keeps points, or by cutting. */
export type NodeStyle = (typeof NODE_STYLES)[number];

export type SummaryNode = {
  /** Number of the first turn it stands for. */
  readonly from: number;
  /** Number of the first turn behind it. */
  readonly before: number;
  /** 0: of messages; else one more than the highest node it is made of. */
  readonly level: number;
  readonly style: NodeStyle;
  /** How many it stands for, where that is known. */
  readonly messages?: number;
  /** Ids of the nodes it was made of, oldest first. */
  readonly children?: readonly string[];
  readonly text: string;
  /** It tells what others wrote. */
  readonly isForeign?: true;
};

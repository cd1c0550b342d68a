// Tool: shows the messages that a node of the conversation's summary stands for, as they were recorded.
// Only of this conversation: a node is named by its turns, and those are looked up here and nowhere else.

import { z } from 'zod';
import { isWithin, nodeId, nodesInView, rangeOfNode } from '../agent/rules/summary-nodes-text.ts';
import { ToolError } from '../kernel/message/errors.ts';
import { firstSeqOf } from '../kernel/message/ids.ts';
import { earlierText, tellsForeign } from '../kernel/sessions/rules/earlier.ts';
import type { SessionStore } from '../kernel/sessions/store.ts';
import { readDescription } from './description.ts';
import type { Tool } from './tool.ts';

export type ExpandDeps = {
  readonly sessions: Pick<SessionStore, 'earlier' | 'load'>;
  /** Longest result of a tool. */
  maxResultChars(): number;
};

const MAX_FILES = 1000;
const MAX_ID_CHARS = 50;
const CHILDREN = 'Made of the nodes ';

const expandInput = z.object({
  node: z.string().trim().min(1).max(MAX_ID_CHARS).describe('Id of the node, e.g. t12-40.'),
  from: turnNumber().describe('Number of a turn of the node to begin at; its first when left out.'),
  offset: turnNumber().describe(
    'Character to begin at, as an earlier result said; 0 when left out.',
  ),
});
type ExpandInput = z.infer<typeof expandInput>;

export function createExpand({ sessions, maxResultChars }: ExpandDeps): Tool<ExpandInput> {
  return {
    name: 'expand',
    ...readDescription('expand'),
    aliases: ['lcm_expand', 'expand_node', 'expand_summary'],
    parameterAliases: { node: ['id', 'node_id', 'message_ids', 'nodes'] },
    access: 'read',
    taints: true,
    isOwn: (_input, found) => !tellsForeign(found),
    input: expandInput,
    describe: ({ node, from }) => [node, from && `from ${from}`].filter(Boolean).join(', '),
    async run({ node, from, offset = 0 }, { session, turnId }) {
      const nodes = nodesInView(await sessions.load(session));
      const range = rangeOfNode(node);
      const shown = range && nodes.find((each) => isWithin(range, each));
      if (range === undefined || shown === undefined) {
        throw new ToolError('not_found', unknown(nodes));
      }
      const running = firstSeqOf(turnId) ?? Number.MAX_SAFE_INTEGER;
      const found = await sessions.earlier(session, {
        from: Math.max(range.from, from ?? 0),
        before: Math.min(range.before, running),
        maxTurns: MAX_TURNS,
        maxFiles: MAX_FILES,
      });
      if (found.turns.length === 0) return 'There are no messages behind it any more.';
      const isWhole = range.from === shown.from && range.before === shown.before;
      const children = isWhole ? (shown.children ?? []) : [];
      const more = children.length === 0 ? '' : `\n\n${CHILDREN}${children.join(', ')}.`;
      const maxChars = Math.min(MAX_CHARS, Math.max(MIN_CHARS, maxResultChars())) - more.length;
      return `${earlierText(found, offset, maxChars)}${more}`;
    },
  };
}

function unknown(nodes: ReturnType<typeof nodesInView>): string {
  if (nodes.length === 0)
    return 'This conversation has no nodes; read_earlier shows earlier turns.';
  return `There is no such node here. These are in view: ${nodes.map(nodeId).join(', ')}.`;
}

// Shows the model with a question what was said word for word where a node in view is about it: for this
// turn alone, as a passing note. Worked out anew, and the same, where the turn runs again.

import type { SummaryNode, TranscriptEntry } from '../kernel/message/transcript.ts';
import type { Toolbox } from '../tools/tool.ts';
import { expectedTokens, planCall } from './model-call.ts';
import { type CompactionPolicy, hardTokens } from './rules/compaction.ts';
import { EXPAND } from './rules/context-marks.ts';
import { expansionNote, MIN_EXPANSION_TOKENS, relevantNode, termsOf } from './rules/expansion.ts';
import { nodesInView } from './rules/summary-nodes-text.ts';
import { confinedTools } from './settings.ts';
import type { TurnContext } from './turn-context.ts';

const CONTEXT_SHARE = 0.05;
const MAX_TOKENS = 2000;
const MAX_TURNS = 50;
/** A question costs no more where a conversation is old; the tool goes further back. */
const MAX_FILES = 3;

/** What goes wrong here leaves the question as it is: the model can still ask for the node. */
export async function expandFor(turn: TurnContext): Promise<void> {
  const nodes = nodesInView(turn.prepared.history);
  if (nodes.length === 0) return;
  try {
    await expand(turn, nodes);
  } catch (error) {
    turn.log.warn('nothing shown of what a node stands for', { error });
  }
}

async function expand(turn: TurnContext, nodes: readonly SummaryNode[]): Promise<void> {
  const terms = termsOf(turn.input.messages.map(({ message }) => message.text).join('\n'));
  const node = relevantNode(nodes, terms);
  const tokens = node === undefined ? 0 : roomIn(turn);
  if (node === undefined || tokens < MIN_EXPANSION_TOKENS) return;
  const { from, before } = node;
  const range = { from, before, maxTurns: MAX_TURNS, maxFiles: MAX_FILES };
  const { turns } = await turn.sessions.earlier(turn.input.session, range);
  turn.expansion.note = expansionNote(node, turns, terms, tokens);
}

/** Below the limit at which the call would have to wait. */
function roomIn(turn: TurnContext): number {
  const model = turn.input.settings.model ?? turn.models.defaultModel;
  const call = planCall(turn, { model, ask: { kind: 'work' } });
  const { contextTokens, handle } = call;
  const left = hardTokens(turn.settings.compaction, call) - expectedTokens(turn, call);
  const uncorrected = left / turn.correction.factor(handle.name);
  return Math.floor(Math.min(uncorrected, contextTokens * CONTEXT_SHARE, MAX_TOKENS));
}

// The tool that expands nodes exists for a turn only where its conversation has some, or gets some.

export function withExpand(
  toolbox: Toolbox,
  { enabled, engine }: CompactionPolicy,
  history: readonly TranscriptEntry[],
): Toolbox {
  const isUsed = (enabled && engine === 'lossless') || nodesInView(history).length > 0;
  return isUsed ? toolbox : confinedTools(toolbox, { mayUse: (name) => name !== EXPAND });
}

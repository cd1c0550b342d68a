// One step of lossless compaction: the next node, written by a model level by level, or cut from what it
// stands for where no level does. A step is one entry, so that a kill costs at most its calls.

import type { TranscriptEntry } from '../kernel/message/transcript.ts';
import { newBoundary } from '../lib/boundary.ts';
import type { CompactionRequest } from './compaction.ts';
import type { CompactorDeps } from './compactor-deps.ts';
import { callBudget } from './rules/budget.ts';
import { stillStands } from './rules/compaction.ts';
import { compactionText } from './rules/compaction-prompt.ts';
import { entryWithNode, losslessLimits, type NodePlan, planNode } from './rules/lossless.ts';
import {
  ASKED_STYLES,
  cutNode,
  nodePrompt,
  nodeTokens,
  unreadNode,
  writtenNode,
} from './rules/lossless-text.ts';
import type { SummaryNode } from './rules/summary-nodes.ts';

/** Of turns that a new file left out, the newest so many become a node of their own. */
const MAX_FOUND_TURNS = 20;
/** Of a node that is made anew; what is too long to read is cut. */
const MAX_TURNS_AGAIN = 200;
/** Estimates err, and what is cut to the limit is marked. */
const READ_SHARE = 0.8;

type Reading = { readonly readTokens: number; readonly signal: AbortSignal };

/** How many messages are no longer shown as they were said; undefined: there was nothing to do. */
export async function losslessStep(
  request: CompactionRequest,
  deps: CompactorDeps,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { session, model, policy, size, keepTokens } = request;
  const { sessions, clock, models, outdated } = deps;
  const registry = models();
  const { contextTokens } = registry.resolve(registry.fast(model));
  const { inputTokens } = callBudget(contextTokens, policy.summaryTokens);
  const readTokens = Math.floor(inputTokens * READ_SHARE);
  const limits = losslessLimits(policy, size, readTokens, keepTokens);
  const planned = planNode(await sessions.load(session), limits);
  if (planned === undefined) return undefined;
  const plan = await withFound(planned, request, deps);
  const text = await textFor(plan, request, deps, { readTokens, signal });
  const entry = entryWithNode(plan, text, clock.now());
  const isWritten = await sessions.appendIf(session, [entry], (now) => stillStands(plan, now));
  if (!isWritten) return undefined;
  outdated(session);
  return plan.covered.filter(isMessage).length;
}

/** With the messages as the session's files hold them, and a node for those that are too many. */
async function withFound(
  plan: NodePlan,
  { session }: CompactionRequest,
  { sessions }: CompactorDeps,
): Promise<NodePlan> {
  if (plan.finds === undefined) return plan;
  const range = { from: plan.node.from, before: plan.node.before };
  const isLeftOut = plan.finds === 'left_out';
  const { turns } = await sessions.earlier(session, {
    ...(isLeftOut ? { before: range.before } : range),
    maxTurns: isLeftOut ? MAX_FOUND_TURNS : MAX_TURNS_AGAIN,
  });
  const found = turns.filter(({ turn }) => turn >= range.from);
  const made = found.flatMap(({ entries }) => entries);
  const foreign = made.some((entry) => 'isForeign' in entry) ? { isForeign: true as const } : {};
  const from = found[0]?.turn ?? range.from;
  const isSplit = isLeftOut && turns.length >= MAX_FOUND_TURNS && from > range.from;
  if (!isSplit) return { ...plan, made, node: { ...plan.node, ...foreign } };
  const older = { from: range.from, before: from };
  const unread: SummaryNode = { ...older, level: 0, style: 'cut', text: unreadNode(older) };
  const { messages: _, ...node } = plan.node;
  return {
    ...plan,
    made,
    node: { ...node, from, messages: made.filter(isMessage).length, ...foreign },
    others: [...plan.others, unread],
  };
}

async function textFor(
  { made, node }: NodePlan,
  { payer, model, policy }: CompactionRequest,
  { side }: CompactorDeps,
  { readTokens, signal }: Reading,
): Promise<Pick<SummaryNode, 'text' | 'style'>> {
  if (made.length === 0) return { text: unreadNode(node), style: 'cut' };
  for (const style of ASKED_STYLES) {
    const maxTokens = nodeTokens(made, style, policy.summaryTokens);
    const written = await side.complete(
      {
        role: 'compaction',
        payer,
        besides: model,
        system: nodePrompt(style, maxTokens),
        text: compactionText(made, readTokens, newBoundary()),
        maxTokens: maxTokens * 2,
      },
      signal,
    );
    const text = writtenNode(written, made, maxTokens);
    if (text !== undefined) return { text, style };
  }
  return { text: cutNode(made, nodeTokens(made, 'cut', policy.summaryTokens)), style: 'cut' };
}

const isMessage = ({ role }: TranscriptEntry) =>
  role === 'user' || role === 'assistant' || role === 'tool';

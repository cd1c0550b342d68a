// What the next call of a conversation would take of the model's context window, from what is prepared
// for it: the same prompt, tools and thread that the model would get, and the same estimates.

import { workingNoteText } from '../features/memory/rules/memory-notes.ts';
import { planCall } from './model-call.ts';
import { clearedAmong } from './rules/clear-results.ts';
import { watermarkTokens } from './rules/compaction.ts';
import type { ContextReport } from './rules/context-fit.ts';
import { imagesShownBy } from './rules/model-vision.ts';
import { nodeId, nodesInView } from './rules/summary-nodes-text.ts';
import { entryTokens, imagesTokens, messagesTokens, textTokens } from './rules/tokens.ts';
import { toolsTokens } from './rules/tool-room.ts';
import type { ClearedResults } from './thread.ts';
import type { TurnContext } from './turn-context.ts';

export function contextReport(turn: TurnContext, cleared: ClearedResults): ContextReport {
  const { input, models, prepared, settings } = turn;
  turn.thread.open(prepared.history, [], []);
  const model = input.settings.model ?? models.defaultModel;
  const call = planCall(turn, { model, ask: { kind: 'work' } });
  const factor = turn.correction.factor(call.handle.name);
  const corrected = (tokens: number) => Math.ceil(tokens * factor);
  const { system, tools, messages } = call.request;
  const shown = call.handle.vision ? imagesShownBy(call.handle) : 0;
  const summary = prepared.history.find(({ role }) => role === 'summary');
  const summaryTokens = summary === undefined ? 0 : entryTokens(summary);
  const { working } = prepared;
  const workingTokens =
    working === undefined ? 0 : textTokens(workingNoteText(working, call.contextTokens));
  const size = { contextTokens: call.contextTokens, budget: call.budget };
  const { compaction } = settings;
  return {
    model: call.handle.name,
    contextTokens: call.contextTokens,
    inputTokens: call.budget.inputTokens,
    summedUpAbove: compaction.enabled ? watermarkTokens(compaction, size) : undefined,
    prompt: system
      .flatMap(({ parts }) => parts)
      .map(({ name, text }) => ({ name, tokens: corrected(textTokens(text)) })),
    tools: {
      count: tools.length,
      tokens: corrected(toolsTokens(tools)),
      leftOut: call.leftOut.tools,
    },
    summary: corrected(summaryTokens),
    nodes: nodesInView(prepared.history).map((node) => ({
      id: nodeId(node),
      style: node.style,
      tokens: corrected(textTokens(node.text)),
    })),
    working: corrected(workingTokens),
    conversation: {
      messages: messages.length - (summary === undefined ? 0 : 1),
      tokens: corrected(Math.max(0, messagesTokens(messages) - summaryTokens - workingTokens)),
    },
    images: corrected(imagesTokens(messages, shown)),
    cleared: clearedAmong(prepared.history, cleared.of(input.session)).size,
    rewritten: call.rewritten,
    total: corrected(call.fixedTokens + call.threadTokens),
    isCorrected: factor !== 1,
  };
}

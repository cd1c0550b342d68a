// Builds what has turns of its own beside those of people: the helpers that turns of the agent start, and
// the runs of workflows.

import type { People } from '../features/people/people.ts';
import type { Automation } from '../features/schedule/build-automation.ts';
import { amountOf, type Price } from '../features/spending/rules/spending.ts';
import { helpersAtWork } from '../features/subagents/agents-commands.ts';
import { buildSubagents, type SubagentParts } from '../features/subagents/build-subagents.ts';
import { buildWorkflows, type WorkflowParts } from '../features/workflows/build-workflows.ts';
import { workflowsAtWork } from '../features/workflows/workflow-commands.ts';
import type { LiveConfig } from '../kernel/config/files/live-config.ts';
import type { SessionKey } from '../kernel/message/ids.ts';
import type { TokenUsage } from '../kernel/message/transcript.ts';
import type { Dispatcher, DispatcherDeps } from '../kernel/turns/dispatcher.ts';
import type { Origins } from '../kernel/turns/origins.ts';
import { assumedPrice, priceOf } from '../providers/rules/model-names.ts';

/** Built later than the agent. */
export type BuiltLater = {
  readonly people: People;
  readonly deciding: { readonly origins: Origins };
  readonly automation: Automation;
};

export function buildOwnTurns(
  parts: Omit<SubagentParts, 'costOf'> & Pick<WorkflowParts, 'agent' | 'spending'>,
  later: () => BuiltLater,
) {
  const { live } = parts;
  const costOf = (model: string, usage: TokenUsage) => costIn(live, model, usage);
  const subagents = buildSubagents({ ...parts, costOf });
  const workflows = buildWorkflows({
    ...{ ...parts, experience: subagents.experience, votes: subagents.votes },
    costOf: (model, usage, countsMoney) =>
      costIn(live, model, usage) ?? (countsMoney ? assumedCost(live, usage) : undefined),
    people: () => later().people,
    origins: () => later().deciding.origins,
    jobEnded: (...over) => later().automation.jobEnded(...over),
  });
  return {
    subagents,
    workflows,
    desks: { helpers: subagents.desk, workflows: workflows.desk },
    with: (dispatcher: Dispatcher, deps: DispatcherDeps) =>
      workflows.with(subagents.with(dispatcher, deps), deps),
    background: [...subagents.background, ...workflows.background],
    async status(session: SessionKey): Promise<readonly string[]> {
      const helpers = await helpersAtWork(session, subagents.desk);
      const atWork = [...helpers, ...(await workflowsAtWork(session, workflows.desk))];
      return [...atWork, ...(await subagents.status())];
    },
  };
}

function costIn({ config }: LiveConfig, model: string, usage: TokenUsage): number | undefined {
  const price = priceOf(model, config.models.prices, config.limits.budget.currency);
  return price === undefined ? undefined : microsOf(price, usage);
}

/** Of a model whose price nobody knows, as the spending guard charges it. */
function assumedCost({ config }: LiveConfig, usage: TokenUsage): number | undefined {
  const { unpriced, currency } = config.limits.budget;
  const price = assumedPrice(unpriced, currency);
  return price === undefined ? undefined : microsOf(price, usage);
}

function microsOf(price: Price, usage: TokenUsage): number {
  const { inputTokens: input, outputTokens: output, cachedTokens: cached, writtenTokens } = usage;
  const written = writtenTokens === undefined ? {} : { written: writtenTokens };
  return amountOf(price, { input, output, cached, ...written }).micros;
}

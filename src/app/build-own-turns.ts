// Builds what has turns of its own beside those of people: the helpers that turns of the agent start, and
// the runs of workflows.

import type { SessionKey } from '../core/ids.ts';
import { assumedPrice, priceOf } from '../core/model-prices.ts';
import { amountOf, type Price } from '../core/spending.ts';
import type { TokenUsage } from '../core/transcript.ts';
import { helpersAtWork } from '../gateway/agents-commands.ts';
import type { Dispatcher, DispatcherDeps } from '../gateway/dispatcher.ts';
import type { Origins } from '../gateway/origins.ts';
import type { People } from '../gateway/people.ts';
import { workflowsAtWork } from '../gateway/workflow-commands.ts';
import type { Automation } from './build-automation.ts';
import { buildSubagents, type SubagentParts } from './build-subagents.ts';
import { buildWorkflows, type WorkflowParts } from './build-workflows.ts';
import type { LiveConfig } from './live-config.ts';

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

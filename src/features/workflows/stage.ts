// The turn stage of workflows: a turn in their channel advances one run, by an agent without a
// model of its own. A denied approval, which arrives in the session of the run, wakes the run;
// everything else sent there is dropped.

import type { Agent } from '../../agent/agent.ts';
import type { Courier, MessageBus, Turn } from '../../kernel/bus/bus.ts';
import type { HandledTurn, NextStage, TurnSetup } from '../../kernel/turns/stages.ts';
import type { Logger } from '../../lib/logger.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { WorkflowAgentDeps } from './workflow-agent.ts';
import type { WorkflowRows } from './workflow-rows.ts';
import { wakeMessage } from './workflow-runs.ts';

const GIVEN_UP = t`it failed several times and is set aside (see "nanobot dead list")`;
const TOLD = /^approval\/.*\/told$/s;

/**
 * The agent of these turns: it follows the workflow, and no model decides. Loaded with the first
 * run.
 */
export function workflowAgent(agent: Agent, deps: WorkflowAgentDeps): Agent {
  return {
    ...agent,
    prepare: async (session) => ({ session }),
    async *run(input, _context, signal) {
      const { runWorkflow } = await import('./workflow-agent.ts');
      const kind = yield* runWorkflow(deps, input, signal);
      const throughSeq = Math.max(...input.messages.map(({ seq }) => seq));
      return { kind, answers: [], throughSeq };
    },
  };
}

export function workflowsStage(
  setup: TurnSetup,
  { rows, end }: Pick<WorkflowAgentDeps, 'rows' | 'end'>,
) {
  return {
    run: async (turn: Turn, next: NextStage): Promise<HandledTurn> => ({
      ...(await next(turn, () => setup)),
      outbound: [],
    }),
    async givenUp(id: string): Promise<void> {
      const run = await rows.runs.get(id);
      if (run !== undefined) await end(run, 'failed', GIVEN_UP);
    },
  };
}

export function workflowCourier(deps: {
  readonly rows: WorkflowRows;
  readonly bus: Pick<MessageBus, 'accept'>;
  readonly clock: Clock;
  readonly log: Logger;
}): Courier['send'] {
  const { rows, bus, clock, log } = deps;
  return async ({ id, chat }) => {
    const run = TOLD.test(id) ? await rows.runs.get(chat.chat) : undefined;
    if (run === undefined) log.info('output of a workflow without a recipient', { message: id });
    else await bus.accept([{ kind: 'queue', message: wakeMessage(run, id, clock.now()) }]);
    return { nativeIds: [] };
  };
}

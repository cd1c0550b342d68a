// Builds workflows: where their files and runs are kept, their turns, and what people and the model see
// of them.

import type { Agent } from '../../agent/agent.ts';
import { agentSettingsOf } from '../../agent/settings.ts';
import type { SpendingGuard } from '../../agent/spending.ts';
import type { Foundations } from '../../app/foundations.ts';
import type { Registries } from '../../kernel/contributions.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import { OWNER_TURN } from '../../kernel/message/notes.ts';
import { observedAgent } from '../../kernel/observe/observed.ts';
import type { Origins } from '../../kernel/turns/origins.ts';
import type { SessionSettingsStore } from '../../kernel/turns/session-settings.ts';
import { createTurnPersonOf } from '../../kernel/turns/turn-person.ts';
import { createPermits } from '../../lib/async.ts';
import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import type { Toolbox } from '../../tools/tool.ts';
import type { People } from '../people/people.ts';
import type { JobStartDeps } from '../schedule/job-start.ts';
import { JOB_CHANNEL, jobChat } from '../schedule/rules/job.ts';
import { chargedCost, knownCost } from '../spending/build-spending.ts';
import type { Experience } from '../subagents/learnt.ts';
import { namedAs } from './rules/inputs.ts';
import { WORKFLOW_CHANNEL } from './rules/workflow.ts';
import { workflowAgent, workflowCourier, workflowsStage } from './stage.ts';
import { createWorkflow } from './tool.ts';
import type { WorkflowAgentDeps } from './workflow-agent.ts';
import { workflowCommands, workflowsAtWork } from './workflow-commands.ts';
import { createWorkflowFiles } from './workflow-files.ts';
import { createWorkflowDesk, type WorkflowDesk } from './workflow-people.ts';
import { checkTyped, tellHome, WorkflowRuns } from './workflow-runs.ts';

export type WorkflowParts = Foundations & {
  readonly files: GuardedFiles;
  readonly agent: Agent & { toolbox(): Toolbox };
  readonly spending: SpendingGuard;
  readonly settings: SessionSettingsStore;
  models(): ModelRegistry;
  readonly people: Pick<People, 'persons'>;
  readonly origins: Origins;
  readonly registries: Registries;
  readonly votes: WorkflowAgentDeps['votes'];
  readonly experience: Pick<Experience, 'workflowEnded'>;
};

export type BuiltWorkflows = {
  /** For commands. */
  readonly desk: WorkflowDesk;
  readonly runs: Pick<WorkflowRuns, 'whenJobEnds'>;
  readonly startWorkflow: JobStartDeps['startWorkflow'];
  /** What a job that is made is to start. @throws WorkflowError */
  checkWorkflow(typed: string): Promise<void>;
};

/** Workflows are limited where they start; permits of their own keep them off those of people. */
const PLACES = 200;

export function buildWorkflows(parts: WorkflowParts): BuiltWorkflows {
  const { live, clock, log, bus, agent, spending, models } = parts;
  const { add, contributed } = parts.registries;
  // What is off takes no place: it counts from the start of the gateway on.
  const { enabled } = live.config.agents.workflows;
  const settings = () => ({ ...live.config.agents.workflows, enabled });
  const isEnabled = () => enabled;
  const { workflows: rows } = parts.collections;
  const files = createWorkflowFiles(parts.files, () => live.defaults.workspace);
  const runs = new WorkflowRuns({ rows, files, bus, clock, log, settings });
  const turns: WorkflowAgentDeps = {
    ...{ rows, spending, models, clock, log, most: settings },
    costOf: (model, usage, countsMoney) =>
      countsMoney ? chargedCost(live, model, usage) : knownCost(live, model, usage),
    ...{ votes: parts.votes, voting: () => live.config.agents.voting },
    approvals: parts.collections.calls,
    toolbox: () => agent.toolbox(),
    settings: () => agentSettingsOf(live.config, live.defaults.workspace),
    say: (run, name, text) => tellHome(run, { name, text, now: clock.now() }, bus),
    async end(run, how, result) {
      if (how !== 'cancelled') {
        const definition = () => rows.definitions.get(run.id);
        await parts.experience.workflowEnded(run, how, { definition, most: settings() });
      }
      await runs.end(run, how, result);
    },
    tell: (id) => runs.tell(id),
  };
  const personOf = createTurnPersonOf(parts.people.persons);
  const desk = createWorkflowDesk({
    ...{ rows, files, runs, clock, isEnabled },
    modelOf: async (session: SessionKey) => (await parts.settings.get(session)).model,
  });
  const tool = createWorkflow(desk);
  add.tools(() => [tool]);
  add.command(
    ...workflowCommands(desk, async (message) => {
      const { rights, isForeign: isTainted } = await parts.origins(message);
      return { rights, isTainted, person: await personOf(message) };
    }),
  );
  add.personalData(runs);
  add.startedFrom(WORKFLOW_CHANNEL, async (id) => {
    const home = (await rows.runs.get(id))?.starter.home;
    if (home === undefined) return [];
    return home.kind === 'chat'
      ? [home.session]
      : ((await contributed.startedFrom(JOB_CHANNEL)?.(home.job)) ?? []);
  });
  add.status((session) => workflowsAtWork(session, desk));
  const own = observedAgent(workflowAgent(agent, turns), parts.measuring, clock);
  add.stage(workflowsStage({ agent: own, permits: createPermits(PLACES) }, turns));
  if (enabled) {
    const courier = workflowCourier({ rows, bus, clock, log });
    add.task({
      name: 'words of workflows',
      run: (signal) => bus.deliver(courier, { signal, concurrency: 1 }),
    });
  }
  return {
    desk,
    runs,
    checkWorkflow: (typed) => checkTyped(files, enabled, typed),
    async startWorkflow({ job, id }, { rights, person = OWNER_TURN, isTainted, paidBy, limits }) {
      const payer = {
        ...(paidBy === undefined ? {} : { paidBy }),
        ...(limits === undefined ? {} : { limits }),
      };
      const home = { kind: 'job', job: job.id } as const;
      const as = { home, rights, person, payer, payingChat: jobChat(job.id) };
      const starter = { ...as, isTainted: isTainted === true };
      await runs.start({ ...namedAs(job.text), key: id, begunBy: id, starter });
    },
  };
}

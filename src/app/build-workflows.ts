// Builds workflows: where their files and runs are kept, their turns, and what people and the model see
// of them.

import type { Agent } from '../agent/agent.ts';
import { agentSettingsOf } from '../agent/settings.ts';
import type { SpendingGuard } from '../agent/spending.ts';
import type { Experience } from '../automation/experience.ts';
import type { JobStartDeps } from '../automation/job-start.ts';
import type { WorkflowAgentDeps } from '../automation/workflow-agent.ts';
import { WORKFLOWS_SCOPE, WorkflowBook } from '../automation/workflow-book.ts';
import { createWorkflowFiles } from '../automation/workflow-files.ts';
import { tellHome } from '../automation/workflow-messages.ts';
import { createWorkflowPeople } from '../automation/workflow-people.ts';
import { WorkflowRuns, type WorkflowRunsDeps } from '../automation/workflow-runs.ts';
import { withWorkflows, workflowAgent, workflowCourier } from '../automation/workflow-turns.ts';
import { checkTyped } from '../automation/workflow-wish.ts';
import type { SessionKey } from '../core/ids.ts';
import { jobChat } from '../core/job.ts';
import { OWNER_TURN } from '../core/notes.ts';
import { namedAs } from '../core/workflow/inputs.ts';
import { APPROVALS_SCOPE, ApprovalBook } from '../gateway/approval-book.ts';
import { createDispatcher, type Dispatcher, type DispatcherDeps } from '../gateway/dispatcher.ts';
import type { Origins } from '../gateway/origins.ts';
import type { People } from '../gateway/people.ts';
import type { SessionSettingsStore } from '../gateway/session-settings.ts';
import { createTurnPersonOf } from '../gateway/turn-person.ts';
import type { WorkflowDesk } from '../gateway/workflow-desk.ts';
import type { GuardedFiles } from '../lib/guarded-files.ts';
import { createPermits } from '../lib/permits.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import type { Toolbox } from '../tools/tool.ts';
import type { Workflows } from '../tools/workflow.ts';
import type { Foundations } from './foundations.ts';
import type { BackgroundWork } from './gateway-service.ts';
import { observedAgent } from './observed-agent.ts';

export type WorkflowParts = Foundations & {
  readonly files: GuardedFiles;
  readonly agent: Agent & { toolbox(): Toolbox };
  readonly spending: SpendingGuard;
  readonly settings: SessionSettingsStore;
  models(): ModelRegistry;
  /** Built later. */
  people(): Pick<People, 'persons'>;
  origins(): Origins;
  jobEnded: WorkflowRunsDeps['jobEnded'];
  readonly costOf: WorkflowAgentDeps['costOf'];
  readonly votes: WorkflowAgentDeps['votes'];
  readonly experience: Pick<Experience, 'workflowEnded'>;
};

export type BuiltWorkflows = {
  /** For the tool. */
  readonly workflows: Workflows;
  /** For commands. */
  readonly desk: WorkflowDesk;
  readonly runs: WorkflowRuns;
  readonly startWorkflow: JobStartDeps['startWorkflow'];
  /** What a job that is made is to start. @throws WorkflowError */
  checkWorkflow(typed: string): Promise<void>;
  /** `deps`: of the dispatcher for people's turns. */
  with(dispatcher: Dispatcher, deps: DispatcherDeps): Dispatcher;
  readonly background: readonly BackgroundWork[];
};

/** They are counted where they start; this only keeps them out of the places of people. */
const PLACES = 200;

export function buildWorkflows(parts: WorkflowParts): BuiltWorkflows {
  const { live, clock, log, store, bus, agent, spending, models, jobEnded } = parts;
  // What is off takes no place: it counts from the start of the gateway on.
  const { enabled } = live.config.agents.workflows;
  const settings = () => ({ ...live.config.agents.workflows, enabled });
  const isEnabled = () => enabled;
  const book = new WorkflowBook(store.scope(WORKFLOWS_SCOPE), (text) => live.redact(text));
  const files = createWorkflowFiles(parts.files, () => live.defaults.workspace);
  const runs = new WorkflowRuns({ book, files, bus, clock, log, settings, jobEnded });
  const turns: WorkflowAgentDeps = {
    ...{ book, spending, models, clock, log, most: settings },
    ...{ costOf: parts.costOf, votes: parts.votes, voting: () => live.config.agents.voting },
    approvals: new ApprovalBook(store.scope(APPROVALS_SCOPE)),
    toolbox: () => agent.toolbox(),
    settings: () => agentSettingsOf(live.config, live.defaults.workspace),
    say: (run, name, text) => tellHome(run, { name, text, now: clock.now() }, bus),
    async end(run, how, result) {
      if (how !== 'cancelled') {
        const definition = () => book.definition(run.id);
        await parts.experience.workflowEnded(run, how, { definition, most: settings() });
      }
      await runs.end(run, how, result);
    },
    tell: (id) => runs.tell(id),
  };
  return {
    ...createWorkflowPeople({
      ...{ book, files, runs, clock, isEnabled },
      async standingOf(message) {
        const { rights, isForeign: isTainted } = await parts.origins()(message);
        const person = await createTurnPersonOf(parts.people().persons)(message);
        return { rights, isTainted, person };
      },
      modelOf: async (session: SessionKey) => (await parts.settings.get(session)).model,
    }),
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
    with(dispatcher, deps) {
      const own = createDispatcher({
        ...deps,
        agent: observedAgent(workflowAgent(agent, turns), parts.measuring, clock),
        permits: createPermits(PLACES),
        settings() {
          const usual = deps.settings();
          // Nobody writes on in their conversations.
          return { ...usual, coalesce: { ...usual.coalesce, mode: 'wait', quietMs: 0 } };
        },
      });
      return withWorkflows(dispatcher, own, turns);
    },
    background: enabled
      ? [
          {
            name: 'words of workflows',
            run: (signal) =>
              bus.deliver(workflowCourier({ book, bus, clock, log }), { signal, concurrency: 1 }),
          },
        ]
      : [],
  };
}

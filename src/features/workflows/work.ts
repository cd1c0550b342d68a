// The workflows of a gateway: their files, runs and turns. Loaded with their first use.

import { AGENT } from '../../agent/install.ts';
import { MODELS } from '../../agent/models.ts';
import { agentSettingsOf } from '../../agent/settings.ts';
import type { Rights } from '../../kernel/access/rights.ts';
import type { Kernel } from '../../kernel/feature.ts';
import type { MessageId, SessionKey } from '../../kernel/message/ids.ts';
import type { SystemSender } from '../../kernel/message/message.ts';
import { OWNER_TURN } from '../../kernel/message/untrusted.ts';
import { observedAgent } from '../../kernel/observe/observed.ts';
import { createTurnPersonOf } from '../../kernel/turns/origins.ts';
import { createPermits } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import { TOOLS } from '../../tools/install.ts';
import { APPROVED_CALLS } from '../approvals/index.ts';
import { MEMORY } from '../memory/index.ts';
import { JOB_CHANNEL, jobChat } from '../schedule/settings.ts';
import { chargedCost, knownCost } from '../spending/index.ts';
import { commissionOf, type Execution, SUBAGENTS, taskTypeOf } from '../subagents/index.ts';
import { type Definition, namedAs, type WorkflowLimits } from './rules/definition.ts';
import { isOver, type WorkflowRun } from './rules/workflow.ts';
import { workflowAgent, workflowCourier, workflowsStage } from './stage.ts';
import type { WorkflowAgentDeps } from './workflow-agent.ts';
import { workflowCommand } from './workflow-commands.ts';
import { createWorkflowService } from './workflow-people.ts';
import { openWorkflowRows, runsOfJob } from './workflow-rows.ts';
import {
  checkTyped,
  createWorkflowFiles,
  createWorkflowRuns,
  forgetRuns,
  type JobEnded,
  tellHome,
} from './workflow-runs.ts';

/**
 * Concurrent turns; runs are limited at their start, and permits of their own keep them from
 * delaying people.
 */
const PLACES = 200;

export type Work = ReturnType<typeof openWork>;

export function openWork(kernel: Kernel, jobEnded: JobEnded) {
  const { live, clock, log, bus, contributed } = kernel;
  const settings = () => live.config.agents.workflows;
  const most = (): WorkflowLimits & { readonly minutes: number } => {
    const { steps, minutes, tokens, money } = settings();
    return { steps, minutes, tokens, ...(money === 0 ? {} : { money }) };
  };
  const agent = kernel.use(AGENT);
  const { toolbox } = kernel.use(TOOLS);
  const { votes, experience } = kernel.use(SUBAGENTS);
  const rows = openWorkflowRows(kernel.rows, live.redact);
  const files = createWorkflowFiles(kernel.use(MEMORY).files, () => live.defaults.workspace);
  const runs = createWorkflowRuns({ rows, files, bus, clock, log, settings, jobEnded });
  const turns: WorkflowAgentDeps = {
    ...{ rows, clock, log, votes, most },
    models: kernel.use(MODELS).current,
    spending: kernel.modelCalls,
    costOf: (model, usage, countsMoney) =>
      countsMoney ? chargedCost(live, model, usage) : knownCost(live, model, usage),
    voting: () => live.config.agents.voting,
    approvals: kernel.use(APPROVED_CALLS),
    toolbox: () => toolbox,
    settings: () => agentSettingsOf(live.config, live.defaults.workspace),
    say: (run, name, text) => tellHome(run, { name, text, now: clock.now() }, bus),
    async end(run, how, result) {
      if (how !== 'cancelled') {
        const definition = () => rows.definitions.get(run.id);
        await experience.noted(run.id, async () =>
          takenByWorkflow(run, how, await definition(), most()),
        );
      }
      await runs.end(run, how, result);
    },
    tell: (id) => runs.tell(id),
  };
  const personOf = createTurnPersonOf(kernel.people.persons);
  const service = createWorkflowService({ ...kernel, rows, files, runs });
  const own = observedAgent(workflowAgent(agent, turns), kernel.measuring, clock);
  return {
    service,
    command: workflowCommand(service, async (message) => {
      const { rights, isForeign: isTainted } = await kernel.origins(message);
      return { rights, isTainted, person: await personOf(message) };
    }),
    /** For /status; empty where none runs. */
    async statusLines(session: SessionKey): Promise<readonly string[]> {
      const { length } = await service.atWork(session);
      return length === 0 ? [] : [t`Workflows running: ${length} (see /workflow runs)`];
    },
    personalData: { forget: forgetRuns(rows) },
    stage: workflowsStage({ agent: own, permits: createPermits(PLACES) }, turns),
    courier: workflowCourier({ rows, bus, clock, log }),
    async startedFrom(id: string): Promise<readonly SessionKey[]> {
      const home = (await rows.runs.get(id))?.starter.home;
      if (home === undefined) return [];
      return home.kind === 'chat'
        ? [home.session]
        : ((await contributed.startedFrom(JOB_CHANNEL)?.(home.job)) ?? []);
    },
    async stillWanted(id: string): Promise<boolean> {
      const run = await rows.runs.get(id);
      return run !== undefined && !isOver(run);
    },
    /** Checks what a new job would start. @throws WorkflowError */
    check: (typed: string) => checkTyped(files, typed),
    /** Ids of the runs that this job started and that have not ended. */
    ofJob: (job: string) => runsOfJob(rows, job),
    /** Starts the workflow that the job names. @throws WorkflowError */
    async startForJob(
      {
        job,
        id,
      }: { readonly job: { readonly id: string; readonly text: string }; readonly id: MessageId },
      sender: SystemSender & { readonly rights: Rights },
    ): Promise<void> {
      const { rights, person = OWNER_TURN, isTainted = false } = sender;
      const home = { kind: 'job', job: job.id } as const;
      const asking = { rights, person, isTainted };
      const starter = { home, ...commissionOf(asking, { chat: jobChat(job.id), sender }) };
      await runs.start({ ...namedAs(job.text), key: id, begunBy: id, starter });
    },
  };

  /** For the calibrator. */
  function takenByWorkflow(
    { id, workflow, state, starter, startedAt }: WorkflowRun,
    outcome: 'done' | 'failed',
    definition: Definition | undefined,
    most: WorkflowLimits,
  ): Execution {
    const steps = definition?.workflow.steps ?? [];
    const done = steps.filter(({ id: step }) => Object.hasOwn(state.steps, step));
    const tools = done.flatMap((step) => (step.kind === 'tool' ? [step.tool] : []));
    const now = clock.now();
    return {
      ...{ id, group: t`workflow ${workflow}`, type: taskTypeOf(tools) },
      ...{ model: experience.modelOf(starter.model), rounds: state.number, tokens: state.tokens },
      maxRounds: most.steps ?? state.number,
      maxTokens: most.tokens ?? state.tokens,
      ...{ outcome, micros: state.micros, ms: now - startedAt },
      ...{ tools: tools.length, depth: 1, at: now },
    };
  }
}

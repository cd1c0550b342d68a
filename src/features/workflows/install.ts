// Installs workflows. Everything but their tool and their stage is loaded with the first use: a
// gateway where nobody runs one does not pay for them.

import { MODELS } from '../../agent/models.ts';
import type { Courier } from '../../kernel/bus/bus.ts';
import { commandsOf } from '../../kernel/commands/command-access.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import { readOnce } from '../../lib/async.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import { isDemo } from '../../providers/rules/model-names.ts';
import { WORKFLOW_COMMANDS, WORKFLOWS, type Workflows } from './index.ts';
import { WORKFLOW_CHANNEL } from './rules/workflow.ts';
import { createWorkflow } from './tool.ts';
import type { JobEnded } from './workflow-runs.ts';

const LIFETIME_MS = 86_400_000;

export function install(kernel: Kernel): void {
  const { live, bus, log, add } = kernel;
  const { current: models } = kernel.use(MODELS);
  let jobEnded: JobEnded = async () => undefined;
  const work = readOnce(async () =>
    (await import('./work.ts')).openWork(kernel, (...ended) => jobEnded(...ended)),
  );
  const tool = createWorkflow(async () => (await work()).service);
  add.tools(() => (isOffered(live.config.agents.workflows.enabled, models()) ? [tool] : []));
  add.command(
    ...commandsOf(WORKFLOW_COMMANDS, {
      workflow: async (...asked) => (await work()).command(...asked),
    }),
  );
  add.personalData({ forget: async (...asked) => (await work()).personalData.forget(...asked) });
  add.startedFrom(WORKFLOW_CHANNEL, async (id) => (await work()).startedFrom(id));
  add.stillWanted(WORKFLOW_CHANNEL, async (id) => (await work()).stillWanted(id));
  add.status({
    lines: async (origin) => (origin ? (await work()).statusLines(origin.session) : []),
  });
  add.stage({
    name: 'workflows',
    async run(turn, next) {
      if (turn.chat.channel !== WORKFLOW_CHANNEL) return next(turn);
      return (await work()).stage.run(turn, next);
    },
    onPoison(turn) {
      if (turn.chat.channel !== WORKFLOW_CHANNEL) return undefined;
      const told = work().then(({ stage }) => stage.givenUp(turn.chat.chat));
      told.catch((error) => log.error('end of a workflow not stored', { error }));
      return [];
    },
  });
  const courier: Courier = {
    account: WORKFLOW_CHANNEL,
    onUnknown: 'idempotent',
    lifetimeMs: LIFETIME_MS,
    send: async (...sent) => (await work()).courier(...sent),
  };
  add.task({
    name: 'words of workflows',
    isOnce: true,
    run: (signal) => bus.deliver(courier, { signal, concurrency: 1 }),
  });
  kernel.provide(WORKFLOWS, {
    service: {
      all: async () => (await work()).service.all(),
      cancel: async (id) => (await work()).service.cancel(id, { notes: undefined }),
      stopAll: async (session) => (await work()).service.stopAll(session),
      atWork: async (session) => (await work()).service.atWork(session),
    },
    whenJobEnds(ended) {
      jobEnded = ended;
    },
    startForJob: async (...started) => (await work()).startForJob(...started),
    check: async (typed) => (await work()).check(typed),
    ofJob: async (job) => (await work()).ofJob(job),
  } satisfies Workflows);
}

/** By itself only to a model that fills in schemas well: not a small one, and not the demo. */
function isOffered(enabled: boolean | 'auto', models: ModelRegistry): boolean {
  if (enabled !== 'auto') return enabled;
  try {
    const { name, capabilities } = models.resolve(models.defaultModel);
    return !isDemo(name) && capabilities.sizeClass !== 'small';
  } catch (error) {
    if (error instanceof ProviderError) return false;
    throw error;
  }
}

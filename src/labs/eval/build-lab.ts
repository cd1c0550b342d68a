// The whole agent in a temporary home, for evaluations and replays. It has the configuration,
// skills and models of the real home, and no chat partner.

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SpendingGuard } from '../../agent/agent.ts';
import { type Instead, openAgent } from '../../agent/install.ts';
import { MODELS } from '../../agent/models.ts';
import { createSendEmail } from '../../features/letters/letters.ts';
import { LOCAL_ONLY, LocalOnly } from '../../features/local-models/local-only.ts';
import { createModes, install as installModes, MODES } from '../../features/modes/index.ts';
import { createCron } from '../../features/schedule/cron-tool.ts';
import { createSpawn } from '../../features/subagents/spawn.ts';
import { createWorkflow } from '../../features/workflows/tool.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import type { LoadedConfig } from '../../kernel/config/files/config-file.ts';
import { homeOf } from '../../kernel/config/files/home.ts';
import { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Feature, Kernel } from '../../kernel/feature.ts';
import { budgetGuard } from '../../kernel/guards.ts';
import { installFeatures } from '../../kernel/install-features.ts';
import { openKernel } from '../../kernel/kernel.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { sessionKeyOf } from '../../kernel/message/message.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import { EXECUTOR, openExecutor } from '../../tools/exec/exec.ts';

type LabWish = {
  readonly loaded: LoadedConfig;
  readonly env: Environment;
  readonly models: ModelRegistry;
  readonly spending: SpendingGuard;
  /** Absolute path; left out: a temporary one. */
  readonly workspace?: string;
  /** Replacements for parts of the agent. */
  readonly instead?: Instead & {
    /** The answers of all models are on record. */
    readonly isRecorded: boolean;
  };
};

const FOLDER_MODE = 0o700;
const NOT_HERE = 'there is no person to ask in a temporary home';

/** @throws StoreError */
export async function openLab(wish: LabWish, resources: AsyncDisposableStack) {
  const root = await mkdtemp(join(tmpdir(), 'nanobot-lab-'));
  resources.defer(() => rm(root, { recursive: true, force: true, maxRetries: 3 }));
  const { env, instead } = wish;
  // The declared agents of modes are those of the real home.
  const home = { ...homeOf({ NANOBOT_HOME: join(root, 'home') }), agents: homeOf(env).agents };
  const workspace = wish.workspace ?? join(root, 'workspace');
  const made = wish.workspace === undefined ? [home.root, workspace] : [home.root];
  for (const folder of made) await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
  const keepsRequests = instead !== undefined;
  const quietly = (config: Config) => quiet(config, { workspace, keepsRequests });
  const live = new LiveConfig({ ...wish.loaded, config: quietly(wish.loaded.config) }, env);
  const options = { home, env, channels: [], http: false, foreground: () => undefined };
  const kernel = await openKernel(live, options, NO_ORDERS, resources);
  provideLab(kernel, wish);
  await installFeatures(kernel, LAB_FEATURES);
  return {
    agent: openAgent(kernel, instead),
    workspace,
    /** Applies the settings from the next turn. */
    configure: (config: Config) => live.replace({ ...wish.loaded, config: quietly(config) }),
  };
}

/** No messages arrive, and no turn is dispatched. */
const NO_ORDERS = { intake: [], stages: [], modelGuards: ['budgets'], callGuards: [] };

const LAB_FEATURES: readonly Feature[] = [
  { name: 'skills', load: () => import('../../features/skills/index.ts') },
  { name: 'side model', load: () => import('../../agent/side-model.ts') },
  { name: 'memory', load: () => import('../../features/memory/index.ts') },
  { name: 'tool servers', load: () => import('../../features/mcp/index.ts') },
  { name: 'plans', load: () => import('../../features/plans/index.ts') },
  { name: 'tools', load: () => import('../../tools/install.ts') },
];

/**
 * Switches off everything that measures elsewhere or runs in the background, without changing a
 * turn.
 */
function quiet(
  config: Config,
  { workspace, keepsRequests }: { readonly workspace: string; readonly keepsRequests: boolean },
): Config {
  const { agents, telemetry } = config;
  return {
    ...config,
    sessions: { ...config.sessions, recordPrompts: keepsRequests },
    agents: { ...agents, defaults: { ...agents.defaults, workspace } },
    telemetry: {
      ...telemetry,
      metricsFile: false,
      prometheus: false,
      audit: false,
      otel: { ...telemetry.otel, endpoint: '' },
    },
  };
}

/**
 * Replaces parts of the gateway. In a replay nothing has effects: enabled tools keep their
 * descriptions, and the answers of all models come from the record.
 */
function provideLab(kernel: Kernel, { models, spending, instead }: LabWish): void {
  const { live, store, add } = kernel;
  const { agents, tools } = live.config;
  const isReplayed = instead !== undefined;
  const executor = openExecutor(kernel);
  const isAvailable = () => (isReplayed ? tools.exec.enabled : executor.isAvailable());
  const subagents = { ...NO_SUBAGENTS, isEnabled: () => isReplayed && agents.subagents.enabled };
  const workflows =
    isReplayed && agents.workflows.enabled !== false
      ? [createWorkflow(async () => NO_WORKFLOWS)]
      : [];
  kernel.provide(MODELS, { current: () => models });
  add.modelGuard(budgetGuard(spending));
  kernel.provide(EXECUTOR, { ...executor, isAvailable });
  kernel.provide(
    LOCAL_ONLY,
    new LocalOnly({
      ...{ state: store.scope('local-only'), forAll: () => false, isHome: async () => true },
      sessionOf: async (chat) => sessionKeyOf(chat),
      startedFrom: async () => [],
    }),
  );
  const jobs = createCron(NO_JOBS);
  const spawn = createSpawn(subagents);
  const sendEmail = createSendEmail();
  add.tools(() => [jobs, spawn, sendEmail, ...workflows]);
  if (instead?.isRecorded === true) kernel.provide(MODES, INLINE);
  else installModes(kernel);
}

const INLINE = createModes(
  async () => ({}),
  () => 'inline',
);

const refused = () => Promise.reject(new NanobotError('not_in_lab', NOT_HERE));

const NO_JOBS = { add: refused, check: refused, list: refused, change: refused };
const NO_SUBAGENTS = {
  ...{ start: refused, list: refused, check: refused, wait: refused, cancel: refused },
};

const NO_WORKFLOWS = {
  ...{ list: refused, start: refused, runs: refused, show: refused, cancel: refused },
};

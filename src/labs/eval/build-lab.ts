// The whole agent in a home that is thrown away: for evaluations and for turns that are played again.
// It has the configuration, the skills and the models of the real one, and nobody to speak to.

import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Agent } from '../../agent/agent.ts';
import { buildAgent } from '../../agent/build-agent.ts';
import type { PromptSources } from '../../agent/prepared.ts';
import { createSideModel } from '../../agent/side-model.ts';
import type { SpendingGuard } from '../../agent/spending.ts';
import { type Foundations, layFoundations } from '../../app/foundations.ts';
import { PAIRING_SCOPE } from '../../app/state.ts';
import { OWN_DOORS } from '../../channels/door.ts';
import { buildMemory } from '../../features/memory/build-memory.ts';
import { buildModes, createModes } from '../../features/modes/build-modes.ts';
import { createPeople, type People } from '../../features/people/people.ts';
import { createCron } from '../../features/schedule/cron-tool.ts';
import { buildSkills } from '../../features/skills/catalog.ts';
import { createSpawn } from '../../features/subagents/spawn.ts';
import { createWorkflow } from '../../features/workflows/tool.ts';
import { createChannelDirectory } from '../../kernel/channels.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import type { LoadedConfig } from '../../kernel/config/files/config-file.ts';
import { homeOf } from '../../kernel/config/files/home.ts';
import { LiveConfig } from '../../kernel/config/files/live-config.ts';
import { createRegistries } from '../../kernel/contributions.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import type { AskedBook, SessionStore } from '../../kernel/sessions/store.ts';
import { createSessionSettings } from '../../kernel/turns/session-settings.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import { buildExec } from '../../tools/exec/exec.ts';
import type { Executor } from '../../tools/exec/executor.ts';
import type { Toolbox } from '../../tools/tool.ts';

type LabWish = {
  readonly loaded: LoadedConfig;
  readonly env: Environment;
  readonly models: ModelRegistry;
  readonly spending: SpendingGuard;
  /** Absolute path; left out: one that is thrown away. */
  readonly workspace?: string;
  /** What stands in for the agent's own parts. */
  readonly instead?: {
    /** What every model said is on record, whoever it was. */
    readonly isRecorded: boolean;
    readonly sessions: SessionStore;
    /** What models are asked with. */
    readonly asked: AskedBook;
    toolbox(real: Toolbox): Toolbox;
    prompt(real: PromptSources): PromptSources;
  };
};

type Lab = {
  readonly agent: Pick<Agent, 'prepare' | 'run'>;
  readonly workspace: string;
  readonly redact: (text: string) => string;
  /** From the next turn on it works with these settings. */
  configure(config: Config): void;
};

const FOLDER_MODE = 0o700;
const NOT_HERE = 'nobody is asked in a home that is thrown away';

/** @throws StoreError */
export async function openLab(wish: LabWish, resources: AsyncDisposableStack): Promise<Lab> {
  const root = await mkdtemp(join(tmpdir(), 'nanobot-lab-'));
  resources.defer(() => rm(root, { recursive: true, force: true, maxRetries: 3 }));
  const home = homeOf({ NANOBOT_HOME: join(root, 'home') });
  const workspace = wish.workspace ?? join(root, 'workspace');
  const made = wish.workspace === undefined ? [home.root, workspace] : [home.root];
  for (const folder of made) await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
  const { env, models, spending, instead } = wish;
  const keepsAsked = instead !== undefined;
  const quietly = (config: Config) => quiet(config, { workspace, keepsAsked });
  const live = new LiveConfig({ ...wish.loaded, config: quietly(wish.loaded.config) }, env);
  const nothing = { channels: [], http: false, foreground: () => undefined };
  const foundations = await layFoundations(live, { home, env, ...nothing }, resources);
  const { clock, log } = foundations;
  const people = peopleOf(foundations);
  const maxFileBytes = () => undefined;
  const registries = createRegistries();
  const remembering = buildMemory({
    ...{ ...foundations, home, resources, maxFileBytes },
    ...{ people, registries },
    questions: NO_QUESTIONS,
    only: { closedTo: async () => [], holding: async () => undefined },
  });
  const side = createSideModel({ spending, clock, models: () => models });
  const agent = buildAgent(
    {
      ...{ ...foundations, env, resources, maxFileBytes, side },
      remembering,
      modes: modesOf(foundations, wish, home.traces),
      sessions: instead?.sessions ?? remembering.sessions,
      asked: instead?.asked ?? foundations.asked,
      skills: buildSkills({ home, env, clock, workspace: () => workspace }),
      ...labTools(live, instead !== undefined, buildExec({ live, clock, log, home, env })),
      inboxes: () => [],
      toolServers: { tools: () => [] },
      channels: createChannelDirectory(),
      ...(instead === undefined ? {} : { instead }),
    },
    () => models,
    spending,
  );
  return {
    agent,
    workspace,
    redact: (text) => live.redact(text),
    configure: (config) => live.replace({ ...wish.loaded, config: quietly(config) }),
  };
}

/** Nothing is measured elsewhere and nothing runs behind the turns; what a turn does stays as it is. */
function quiet(
  config: Config,
  { workspace, keepsAsked }: { readonly workspace: string; readonly keepsAsked: boolean },
): Config {
  const { agents, telemetry } = config;
  return {
    ...config,
    sessions: { ...config.sessions, recordPrompts: keepsAsked },
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

function peopleOf({ store, rows, clock }: Foundations): People {
  return createPeople({
    rows,
    state: store.scope(PAIRING_SCOPE),
    ownDoors: OWN_DOORS,
    policy: () => ({ allowFrom: [], owners: [], strangers: 'closed' }),
    clock,
    randomBytes,
    release: async () => undefined,
  });
}

/** Where turns are played again nothing is really done: what is switched on is described as it ever was. */
function labTools(live: LiveConfig, isReplayed: boolean, executor: Executor) {
  const { agents, tools } = live.config;
  const helpers = { ...NO_HELPERS, isEnabled: () => isReplayed && agents.subagents.enabled };
  const workflows = { ...NO_WORKFLOWS, isEnabled: () => isReplayed && agents.workflows.enabled };
  const isAvailable = () => (isReplayed ? tools.exec.enabled : executor.isAvailable());
  return {
    executor: { ...executor, isAvailable },
    contributed: {
      tools: () => [createCron(NO_JOBS), createSpawn(helpers), createWorkflow(workflows)],
    },
  };
}

/** On record, what other models of a turn said stands like the words of the main one. */
function modesOf(foundations: Foundations, wish: LabWish, traces: string) {
  const { models, spending, instead, env } = wish;
  if (instead?.isRecorded === true)
    return createModes(
      async () => ({}),
      () => 'inline',
    );
  const settings = createSessionSettings(foundations.store.scope('session-settings'));
  const tell = () => undefined;
  const home = { traces, agents: homeOf(env).agents };
  const { add } = createRegistries();
  const parts = { spending, settings, tell, models: () => models, home, add };
  return buildModes({ ...foundations, ...parts }).modes;
}

const refused = () => Promise.reject(new NanobotError('not_in_lab', NOT_HERE));

const NO_QUESTIONS = { ask: refused };
const NO_JOBS = { add: refused, check: refused, list: refused, change: refused };
const NO_HELPERS = {
  ...{ start: refused, list: refused, check: refused, wait: refused, cancel: refused },
};

const NO_WORKFLOWS = {
  ...{ list: refused, start: refused, runs: refused, show: refused, cancel: refused },
};

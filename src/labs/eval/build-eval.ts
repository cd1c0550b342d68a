// Opens a home for an evaluation: the measured model with its own deadline, the daily budgets, and
// on demand a workbench with the whole agent. Locks the home.

import type { SpendingGuard } from '../../agent/agent.ts';
import {
  createModels,
  LOCAL_MODELS_SCOPE,
  type ModelsDeps,
  openModelForAll,
} from '../../agent/models.ts';
import { textTokens } from '../../agent/rules/tokens.ts';
import { chargedMeter, tooLate, wholeAnswer } from '../../agent/side-model.ts';
import { openClusterRows } from '../../features/cluster/cluster-service.ts';
import { clusterOf } from '../../features/cluster/index.ts';
import { openLocalOnly } from '../../features/local-models/local-only.ts';
import { Spending } from '../../features/spending/spending.ts';
import { SPENDING_SCOPE } from '../../features/spending/spending-day.ts';
import { holdHome } from '../../kernel/bus/store/home-lock.ts';
import type { StateStore } from '../../kernel/bus/store/store.ts';
import type { LoadedConfig } from '../../kernel/config/files/config-file.ts';
import { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { budgetGuard, guardedModelCalls } from '../../kernel/guards.ts';
import { askGateway, findRunningGateway, openStore } from '../../kernel/home-state.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import { chatId, DEFAULT_ACCOUNT } from '../../kernel/message/ids.ts';
import type { Payer } from '../../kernel/message/message.ts';
import { type ChatRef, sessionKeyOf } from '../../kernel/message/message.ts';
import { openMetricsFile } from '../../kernel/observe/metrics.ts';
import { recordingGuard } from '../../kernel/observe/observed.ts';
import { createRows } from '../../kernel/rows.ts';
import { type Afterwork, createAfterwork, readOnce } from '../../lib/async.ts';
import { openLogFile } from '../../lib/files/files.ts';
import { createLogger, silentLogger } from '../../lib/logger.ts';
import { type Clock, systemClock } from '../../lib/time/clock.ts';
import type { ModelHandle } from '../../providers/provider.ts';
import type { VendorRegistry } from '../../providers/registry.ts';
import type { Question, Reply, Subject, Trial } from './run-eval.ts';
import {
  type CostCounter,
  createCostCounter,
  EVAL_ROLE,
  type Lender,
  LentSpending,
} from './spending.ts';
import { createWorkbench, EVAL_CHANNEL } from './workbench.ts';

type SubjectDeps = {
  readonly handle: ModelHandle;
  readonly spending: SpendingGuard;
  readonly payer: Payer;
  readonly clock: Clock;
  readonly maxTokens: number;
};

const DEADLINE_MS = 300_000;

function createSubject(deps: SubjectDeps): Subject {
  const { handle, spending, payer, clock, maxTokens } = deps;

  async function ask({ system, said, temperature }: Question, signal: AbortSignal): Promise<Reply> {
    const messages = said.map(({ role, text }) =>
      role === 'user'
        ? ({ role, text } as const)
        : ({ role, text, toolCalls: [], thinking: [] } as const),
    );
    const sizes = textTokens([system, ...said.map(({ text }) => text)].join('\n'));
    const meter = chargedMeter(spending, payer, {
      role: EVAL_ROLE,
      maxTokens,
      inputTokens: () => sizes,
    });
    const started = clock.monotonic();
    const request = {
      system: [{ text: system, stable: true }],
      ...{ messages, tools: [], maxTokens, temperature },
    };
    const call = { request, meter, clock, maxMs: DEADLINE_MS, late: () => tooLate(handle) };
    const { text, stop } = await wholeAnswer(handle, call, signal);
    const ms = Math.round(clock.monotonic() - started);
    return { text: text.trim(), isCut: stop === 'length', ms };
  }

  return {
    model: handle.name,
    contextTokens: handle.contextTokens,
    maxTokens,
    ask,
  };
}

export type PurseWish = Pick<Kernel, 'home' | 'env'> & {
  readonly loaded: LoadedConfig;
  /** In the currency of the budgets; undefined: no limit of its own. */
  readonly maxCost: number | undefined;
  /** Left out: no images are shown. */
  readonly loadImage?: ModelsDeps['loadImage'];
  /** A running gateway is allowed, and its budgets are charged; left out: no gateway may run. */
  readonly mayRunBeside?: true;
};

type Purse = {
  readonly models: VendorRegistry;
  readonly cost: CostCounter;
  readonly clock: Clock;
};

type EvalWish = PurseWish & {
  /** Undefined: the default model. */
  readonly model: string | undefined;
  /** Tokens of an answer. */
  readonly maxTokens: number;
  /** The name under which it is charged. */
  readonly name: string;
};

const MICROS = 1_000_000;

/** @throws HomeLockedError where a gateway runs that is not allowed, StoreError */
export async function openPurse(wish: PurseWish, resources: AsyncDisposableStack): Promise<Purse> {
  const lender = wish.mayRunBeside === true ? await lenderOf(wish) : undefined;
  return lender === undefined ? openOwn(wish, resources) : openBeside(wish, lender, resources);
}

/** The gateway of this home, where one runs and responds. */
async function lenderOf({ home, loaded }: PurseWish): Promise<Lender | undefined> {
  const running = await findRunningGateway(home);
  if (running?.address === undefined) return undefined;
  const { token } = loaded.config.gateway;
  const said = await askGateway(running, '/api/status', token);
  return said === undefined ? undefined : { address: running.address, token };
}

/** Model calls are charged there; local models are left to the gateway. */
async function openBeside(
  { home, env, loaded, maxCost, loadImage = noImage }: PurseWish,
  lender: Lender,
  resources: AsyncDisposableStack,
): Promise<Purse> {
  const clock = systemClock;
  const log = silentLogger;
  const live = new LiveConfig(withoutFallbacks(loaded), env);
  const store = resources.use(await openStore(home, { clock, log, setting: live.config.store }));
  const forAll = await openModelForAll(store.scope(LOCAL_MODELS_SCOPE), live);
  const models = await createModels({ live, env, clock, log, forAll, loadImage });
  const inner = resources.use(new LentSpending(lender));
  return { models: elsewhere(models.current()), cost: counterOf(live, inner, maxCost), clock };
}

async function openOwn(
  { home, env, loaded, maxCost, loadImage = noImage }: PurseWish,
  resources: AsyncDisposableStack,
): Promise<Purse> {
  const clock = systemClock;
  const holder = { pid: process.pid, startedAt: new Date().toISOString() };
  resources.use(await holdHome(home.lock, holder));
  const live = new LiveConfig(withoutFallbacks(loaded), env);
  const { level, keepDays } = live.config.logging;
  const { later } = resources.use(createAfterwork(clock));
  const destination = openLogFile({ folder: home.logs, clock, keepDays: () => keepDays, later });
  const log = createLogger({ level, destination, redact: live.redact, later });
  const store = resources.use(await openStore(home, { clock, log, setting: live.config.store }));
  const inner = await openSpending({ home, live, clock, log, store, later }, resources);
  const forAll = await openModelForAll(store.scope(LOCAL_MODELS_SCOPE), live);
  const cluster = await clusterOf({
    ...{ live, clock, log, rows: openClusterRows(createRows(store)) },
    tell: () => undefined,
  });
  resources.defer(async () => cluster?.peers.replace([]));
  const peers = { peers: cluster?.peers, configured: async () => undefined };
  const models = await createModels({ live, env, clock, log, forAll, loadImage, cluster: peers });
  const routes = { sessionOf: async (chat: ChatRef) => sessionKeyOf(chat) };
  const only = openLocalOnly({ live, store, models, routes, startedFrom: () => undefined });
  const cost = counterOf(
    live,
    guardedModelCalls(() => [only.guard, budgetGuard(inner)]),
    maxCost,
  );
  return { models: models.current(), cost, clock };
}

function counterOf(
  live: LiveConfig,
  inner: SpendingGuard,
  maxCost: number | undefined,
): CostCounter {
  const { prices } = live.config.models;
  const { currency } = live.config.limits.budget;
  const maxMicros = maxCost === undefined ? undefined : Math.round(maxCost * MICROS);
  return createCostCounter({ inner, prices, currency, maxMicros });
}

const NOT_BESIDE =
  'the gateway of this home may be using this local model, which answers one call at a time; stop the gateway first';

/** Only the gateway calls its server. */
function elsewhere(registry: VendorRegistry): VendorRegistry {
  return {
    defaultModel: registry.defaultModel,
    resolve(name, tries) {
      const handle = registry.resolve(name, tries);
      if (!handle.local) return handle;
      throw new ProviderError(NOT_BESIDE, {
        ...{ failure: { kind: 'unknown_model' }, provider: 'local', model: name },
        userText: NOT_BESIDE,
      });
    },
    fast: (model) => registry.fast(model),
    ready: () => undefined,
    localModel: (name) => registry.localModel(name),
    isHome: (name) => registry.isHome(name),
    localServers: () => registry.localServers(),
  };
}

const noImage: ModelsDeps['loadImage'] = async () => ({
  kind: 'unreadable',
  reason: 'images are not available here',
});

/** An answer of a fallback model would not measure the selected one. */
function withoutFallbacks(loaded: LoadedConfig): LoadedConfig {
  const { agents } = loaded.config;
  const defaults = { ...agents.defaults, fallbackModels: [] };
  return { ...loaded, config: { ...loaded.config, agents: { ...agents, defaults } } };
}

type SpendingParts = Pick<Kernel, 'home' | 'live' | 'clock' | 'log'> &
  Pick<Afterwork, 'later'> & { readonly store: StateStore };

/** The gateway's ledgers, without notices or questions to people. */
async function openSpending(
  { home, live, clock, log, store, later }: SpendingParts,
  resources: AsyncDisposableStack,
): Promise<SpendingGuard> {
  const silent = () => undefined;
  const spending = resources.use(
    new Spending({
      ...{ state: store.scope(SPENDING_SCOPE), clock, log },
      notes: { spent: silent, cheaper: silent, usedUp: silent, unpriced: silent },
      knownAs: async () => ({ names: [] }),
      ownerOf: async () => ({}),
      settings: () => ({
        limits: live.config.limits,
        prices: live.config.models.prices,
        timeZone: live.config.sessions.timeZone,
      }),
    }),
  );
  await spending.today();
  if (!live.config.telemetry.metricsFile) return spending;
  const metrics = openMetricsFile({ path: home.metrics, log, later });
  const recording = recordingGuard((call) => metrics.record(call), clock);
  return guardedModelCalls(() => [recording, budgetGuard(spending)]);
}

/** @throws as `openPurse`; ProviderError where no vendor serves the model */
export async function openEval(
  wish: EvalWish,
  resources: AsyncDisposableStack,
): Promise<{ readonly trial: Trial; readonly cost: CostCounter }> {
  const { models, cost, clock } = await openPurse({ ...wish, mayRunBeside: true }, resources);
  const name = wish.model ?? models.defaultModel;
  // The context window of a local model is known only after its server was asked.
  await models.ready?.(name);
  const handle = models.resolve(name);
  const payer = {
    chat: { channel: EVAL_CHANNEL, account: DEFAULT_ACCOUNT, chat: chatId(wish.name) },
    sender: { kind: 'system', source: 'webhook' },
  } as const;
  const { loaded, env, maxTokens } = wish;
  const subject = createSubject({ handle, spending: cost.guard, payer, clock, maxTokens });
  const workbench = readOnce(async () => {
    const { openLab } = await import('./build-lab.ts');
    const { agent, workspace } = await openLab(
      { loaded, env, models, spending: cost.guard },
      resources,
    );
    const { thinkingBudget } = loaded.config.agents.defaults;
    return createWorkbench({ agent, workspace, model: handle.name, thinkingBudget, clock, cost });
  });
  return { trial: { subject, clock, workbench }, cost };
}

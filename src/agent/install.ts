// Installs the agent: its tools, prompt, notes and models, with every turn recorded.

import { MEMORY, type Memory } from '../features/memory/index.ts';
import { MODES } from '../features/modes/index.ts';
import type { Modes, ModeTurn } from '../features/modes/modes.ts';
import { PLANS, type PlanService } from '../features/plans/index.ts';
import { SKILLS } from '../features/skills/index.ts';
import { TurnCancelled, TurnTakenOver } from '../kernel/bus/bus.ts';
import type { LiveConfig } from '../kernel/config/files/live-config.ts';
import { type Kernel, port } from '../kernel/feature.ts';
import type { MediaReader } from '../kernel/media/media.ts';
import { ProviderError } from '../kernel/message/errors.ts';
import { createTimeStamps } from '../kernel/message/late.ts';
import type { AgentEvent } from '../kernel/message/message.ts';
import { observedAgent } from '../kernel/observe/observed.ts';
import { createRequestConfig } from '../kernel/sessions/request-log.ts';
import type { RequestLog, SessionStore } from '../kernel/sessions/store.ts';
import { RecentMap } from '../lib/async.ts';
import type { Logger } from '../lib/logger.ts';
import { type Clock, following } from '../lib/time/clock.ts';
import { createZoneNames } from '../lib/time/zone-names.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import { TOOLS } from '../tools/install.ts';
import type { Toolbox } from '../tools/tool.ts';
import {
  type Agent,
  type Compactor,
  type PreparedContext,
  type SpendingGuard,
  SpendingRefusedError,
  type TurnInput,
} from './agent.ts';
import { compactAfter, compactOnCommand } from './compact.ts';
import { createCompactor, withExpand } from './compactor.ts';
import { runApproved } from './execute.ts';
import { createCacheAlarm, createFingerprints, type RequestNotes } from './fingerprints.ts';
import { contextReport, createSections } from './model-call.ts';
import { MODELS } from './models.ts';
import { perform } from './perform.ts';
import {
  createPreparedContexts,
  createPromptSources,
  type NoteSources,
  type PromptSources,
} from './prepared.ts';
import { interrupt, TURN_START } from './rules/turn.ts';
import type { Interruption, LiveState, TurnState } from './rules/turn-state.ts';
import { canReadBack } from './run-call.ts';
import {
  type AgentSettings,
  agentSettingsOf,
  confinedTools,
  limitsOf,
  withEngine,
} from './settings.ts';
import { SIDE_MODEL, type SideModel } from './side-model.ts';
import { failureText } from './stream.ts';
import { type ClearedResults, createRevisions, Thread } from './thread.ts';
import {
  createTokenCorrection,
  SharedCalls,
  type TurnContext,
  TurnNotices,
  TurnRights,
  TurnTime,
} from './turn-context.ts';

export const AGENT = port<Agent>('agent');

/** Replaces parts of the agent in a replay; no notes are made then. */
export type Instead = {
  readonly sessions: SessionStore;
  /** The request log. */
  readonly asked: RequestLog;
  toolbox(real: Toolbox): Toolbox;
  prompt(real: PromptSources): PromptSources;
};

export function install(kernel: Kernel): void {
  const agent = openAgent(kernel);
  kernel.provide(AGENT, agent);
  kernel.add.personalData(kernel.asked);
}

export function openAgent(kernel: Kernel, instead?: Instead): Agent {
  const { live, clock, log, reader, measuring, owners } = kernel;
  const { sessions, asked } = instead ?? kernel;
  const memory = kernel.use(MEMORY);
  const { toolbox } = kernel.use(TOOLS);
  const shown = instead?.toolbox(toolbox) ?? toolbox;
  const prompt = promptOf(kernel, memory);
  const configPiece = createRequestConfig();
  const agent = createAgent({
    ...{ sessions, reader, clock, log, tell: owners.tell },
    models: kernel.use(MODELS).current,
    spending: kernel.modelCalls,
    side: kernel.use(SIDE_MODEL),
    modes: kernel.use(MODES),
    toolbox: () => shown,
    prompt: instead?.prompt(prompt) ?? prompt,
    ...notesOf(live, kernel.use(PLANS), memory),
    asked: () =>
      live.config.sessions.recordPrompts
        ? { requestLog: asked, config: configPiece(live.config) }
        : undefined,
    settings: () => agentSettingsOf(live.config, live.defaults.workspace),
  });
  const observed = observedAgent(kernel.resources.use(agent), measuring, clock);
  return {
    ...observed,
    prepare(session, chat, person) {
      if (instead === undefined) memory.watch.opened(session, person);
      return observed.prepare(session, chat, person);
    },
  };
}

function promptOf(kernel: Kernel, { notes: memory }: Memory): PromptSources {
  const { live } = kernel;
  return createPromptSources({
    workspace: () => live.defaults.workspace,
    memoryText: async (notes) => (live.config.memory.enabled ? memory.promptText(notes) : ''),
    skills: kernel.use(SKILLS),
    profiles: async () =>
      (await Promise.all(kernel.contributed.profiles().map((read) => read()))).join('\n'),
    redact: live.redact,
  });
}

/** Notes that are added at the end of the thread. */
function notesOf(live: LiveConfig, plans: PlanService, { working }: Memory): NoteSources {
  return {
    async standing(session) {
      const note = await plans.note(session);
      return note === undefined ? undefined : { ...note, text: live.redact(note.text) };
    },
    async working(session, { notes }, history) {
      if (!live.config.memory.enabled) return undefined;
      const note = await working.standing(notes, session, history);
      return note === undefined ? undefined : { ...note, body: live.redact(note.body) };
    },
  };
}

// The agent: prepares contexts and runs turns. A turn is `perform` driven by the pure state
// machine. An interruption becomes an ending that the person sees; only a shutdown or an internal
// error is thrown to the message bus, which retries the turn.

type AgentDeps = NoteSources & {
  readonly sessions: SessionStore;
  readonly prompt: PromptSources;
  readonly reader: Pick<MediaReader, 'document'>;
  readonly spending: SpendingGuard;
  /** Summarises long conversations. */
  readonly side: SideModel;
  readonly clock: Clock;
  readonly log: Logger;
  /** Left out: no notices are sent. */
  readonly tell?: (text: string) => void;
  /** Left out: the main model alone does the work. */
  readonly modes?: Modes;
  /** Left out: no request log is kept. */
  readonly asked?: () => Omit<RequestNotes, 'fingerprints'> | undefined;
  /** Read once per turn, so that a changed configuration applies from the next one. */
  models(): ModelRegistry;
  toolbox(): Toolbox;
  settings(): AgentSettings;
};

class TurnTimeUp extends Error {
  override readonly name = 'TurnTimeUp';
}

/** Disposing ends the background work of turns. */
export function createAgent(deps: AgentDeps): Agent & AsyncDisposable {
  const { sessions, clock } = deps;
  const contexts = createPreparedContexts(sessions, deps.prompt, deps);
  const { outdated } = contexts;
  const compactor = createCompactor({ ...deps, outdated });
  const open = createTurnOpener(deps, contexts, compactor);

  return {
    ...createRevisions({ sessions, clock, outdated }),
    compact: (...asked) => compactOnCommand(asked, compactor, deps),
    [Symbol.asyncDispose]: () => compactor[Symbol.asyncDispose](),

    prepare: contexts.prepare,

    async *run(input, context, signal) {
      const opened = await withMode(deps, await open(input, context));
      using ending = following(signal);
      const { time, limits } = opened;
      using _deadline = time.limit(limits.maxMs, () => ending.abort(new TurnTimeUp()));
      const turn = { ...opened, signal: ending.signal };
      try {
        let state: TurnState = TURN_START;
        while (state.phase !== 'done') state = yield* step(turn, state);
        compactAfter(turn);
        return state.outcome;
      } finally {
        outdated(input.session);
      }
    },

    async inspect(input) {
      const context = await contexts.prepare(input.session, input.chat, input.person);
      const { signal } = new AbortController();
      return contextReport({ ...(await open(input, context)), mode: undefined, signal });
    },

    runApproved: (call, signal) => runApproved(deps, call, signal),

    async reset(session) {
      await sessions.append(session, [{ role: 'reset', at: clock.now() }], { durable: true });
      outdated(session);
    },
  };
}

const MAX_TOLD = 100;
/** Maximum number of sessions whose cleared results are remembered. */
const MAX_CLEARED = 256;

/** Builds the context of each turn; the fields here outlive the turn. */
function createTurnOpener(
  deps: AgentDeps,
  contexts: ReturnType<typeof createPreparedContexts>,
  compactor: Compactor,
) {
  const { sessions, reader, spending, clock } = deps;
  const correction = createTokenCorrection();
  const cleared: ClearedResults = new RecentMap(MAX_CLEARED);
  const stampsIn = createTimeStamps();
  const zoneName = createZoneNames();
  const fingerprints = createFingerprints();
  const cacheAlarm = createCacheAlarm(fingerprints);
  const sectionOf = createSections();
  const told = new Set<string>();

  function tellOwner(text: string): void {
    if (told.has(text) || told.size >= MAX_TOLD) return;
    told.add(text);
    deps.tell?.(text);
  }

  return async (input: TurnInput, context: PreparedContext): Promise<ModeTurn> => {
    const time = new TurnTime(clock);
    const { session, turnId, epoch, turnLimits } = input;
    const settings = withEngine(deps.settings(), input.settings.engine);
    const models = deps.models();
    await models.ready?.(input.settings.model ?? models.defaultModel);
    const prepared = await contexts.current(context, input.chat, input.person);
    const tools = confinedTools(deps.toolbox(), turnLimits);
    const toolbox = withExpand(tools, settings.compaction, prepared.history);
    const rights = new TurnRights(input.rights);
    const timeZone = input.person.timeZone ?? settings.timeZone;
    const shown = {
      stampOf: stampsIn(timeZone),
      canReadBack: () => canReadBack({ toolbox, rights }),
    };
    const asked = deps.asked?.();
    return {
      ...{ input, settings, prepared, models, toolbox, rights, tellOwner, clock, time },
      ...{ sessions, reader, spending, correction, compactor, cacheAlarm, sectionOf },
      asked: asked && { ...asked, fingerprints },
      lastCall: { call: undefined, squeeze: 0, hasWaited: false },
      expansion: { note: undefined },
      requestedSkills: async (message) => (await deps.prompt.requestedSkills?.(message)) ?? [],
      limits: limitsOf(settings, turnLimits),
      thread: new Thread({ sessions, session, turnId, epoch, cleared, ...shown }),
      log: deps.log.child({ session, turnId }),
      zone: zoneName(timeZone),
      notices: new TurnNotices(),
      shared: new SharedCalls(input.restarted),
    };
  };
}

/** Turns of subagents, and answers to a changed message, use the main model alone. */
async function withMode(
  { modes }: AgentDeps,
  opened: ModeTurn,
): Promise<Omit<TurnContext, 'signal'>> {
  const { turnLimits, settings, messages } = opened.input;
  const isPlain = turnLimits !== undefined || messages[0].message.redoes?.isAsked === false;
  const mode = isPlain ? undefined : await modes?.open(settings.mode, opened);
  return mode === undefined ? { ...opened, mode } : { ...opened, mode, toolbox: mode.toolbox };
}

async function* step(
  turn: TurnContext,
  state: LiveState,
): AsyncGenerator<AgentEvent, TurnState, void> {
  if (state.phase === 'preparing' || state.phase === 'finalizing') {
    return yield* perform(turn, state);
  }
  try {
    turn.signal.throwIfAborted();
    return yield* perform(turn, state);
  } catch (error) {
    return interrupt(state, interruptionBy(error, turn));
  }
}

/** @throws the error, or the signal's reason, where the turn has to run again */
function interruptionBy(error: unknown, turn: TurnContext): Interruption {
  const { aborted, reason } = turn.signal;
  if (aborted && reason instanceof TurnTakenOver) return { kind: 'stopped', isTakenOver: true };
  if (aborted && reason instanceof TurnCancelled) return { kind: 'stopped' };
  if (aborted && reason instanceof TurnTimeUp) return { kind: 'time' };
  if (aborted) throw reason;
  if (error instanceof SpendingRefusedError) return { kind: 'failed', text: error.text };
  if (!(error instanceof ProviderError)) throw error;
  turn.log.warn('model call failed', { error });
  return { kind: 'failed', text: failureText(error) };
}

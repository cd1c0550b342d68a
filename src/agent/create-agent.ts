// The agent: prepares contexts and runs turns. A turn is `perform` against the pure state machine;
// what breaks it off from outside becomes an ending the person is told about, and only a shutdown
// or a fault of ours is thrown to the bus, which hands the turn out again.

import type { Modes, ModeTurn } from '../features/modes/modes.ts';
import { TurnCancelled } from '../kernel/bus/bus.ts';
import type { MediaReader } from '../kernel/media/media.ts';
import { ProviderError } from '../kernel/message/errors.ts';
import type { AgentEvent } from '../kernel/message/event.ts';
import type { SessionKey } from '../kernel/message/ids.ts';
import { createTimeStamps, type TimeStamp } from '../kernel/message/late.ts';
import type { SessionStore } from '../kernel/sessions/store.ts';
import type { Logger } from '../lib/logger.ts';
import type { Clock } from '../lib/time/clock.ts';
import { createZoneNames } from '../lib/time/zone-time.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import type { Toolbox } from '../tools/tool.ts';
import type { Agent, PreparedContext, TurnInput } from './agent.ts';
import type { AskedNotes } from './asked-notes.ts';
import { type CacheAlarm, createCacheAlarm } from './cache-alarm.ts';
import { createCompacting } from './compact-session.ts';
import type { Compactor } from './compaction.ts';
import { createCompactor } from './compactor.ts';
import { contextReport } from './context-report.ts';
import { runApproved } from './execute.ts';
import { withExpand } from './expansion.ts';
import { LastCall } from './last-call.ts';
import { canReadBack } from './long-results.ts';
import { perform } from './perform.ts';
import { type NoteSources, PreparedContexts } from './prepared.ts';
import { createPrints, type Prints } from './prints.ts';
import type { PromptSources } from './prompt-sources.ts';
import { createRevisions } from './revise.ts';
import { interrupt, TURN_START } from './rules/turn.ts';
import type { Interruption, LiveState, TurnState } from './rules/turn-state.ts';
import { type AgentSettings, confinedTools, limitsOf, withEngine } from './settings.ts';
import type { SideModel } from './side-model.ts';
import { type SpendingGuard, SpendingRefusedError } from './spending.ts';
import { failureText } from './stream.ts';
import { ClearedResults, Thread } from './thread.ts';
import {
  createTokenCorrection,
  Expansion,
  SharedCalls,
  type TokenCorrection,
  type TurnContext,
  TurnNotices,
  TurnRights,
  TurnTime,
} from './turn-context.ts';

export type AgentDeps = NoteSources & {
  readonly sessions: SessionStore;
  readonly prompt: PromptSources;
  readonly reader: Pick<MediaReader, 'document'>;
  readonly spending: SpendingGuard;
  /** Sums up long conversations. */
  readonly side: SideModel;
  readonly clock: Clock;
  readonly log: Logger;
  /** Left out: nobody is told. */
  readonly tell?: (text: string) => void;
  /** Left out: the main model alone does the work. */
  readonly modes?: Modes;
  /** Left out: what models are asked with is not kept. */
  readonly asked?: () => Omit<AskedNotes, 'prints'> | undefined;
  /** Read once per turn, so that a changed configuration holds from the next one on. */
  models(): ModelRegistry;
  toolbox(): Toolbox;
  settings(): AgentSettings;
};

class TurnTimeUp extends Error {
  override readonly name = 'TurnTimeUp';
}

/** What outlives a turn. */
type Lasting = {
  readonly contexts: PreparedContexts;
  readonly correction: TokenCorrection;
  readonly cleared: ClearedResults;
  readonly compactor: Compactor;
  readonly cacheAlarm: CacheAlarm;
  readonly prints: Prints;
  readonly stampsIn: (timeZone: string) => TimeStamp;
  readonly zoneName: (timeZone: string) => string;
  readonly tellOwner: (text: string) => void;
};

/** Disposing ends what goes on behind the turns. */
export function createAgent(deps: AgentDeps): Agent & AsyncDisposable {
  const { sessions, clock } = deps;
  const contexts = new PreparedContexts(sessions, deps.prompt, deps);
  const correction = createTokenCorrection();
  const outdated = (session: SessionKey) => contexts.outdated(session);
  const compactor = createCompactor({ ...deps, outdated });
  const compacting = createCompacting(compactor, deps);
  const cleared = new ClearedResults();
  const times = { stampsIn: createTimeStamps(), zoneName: createZoneNames() };
  const prints = createPrints();
  const cacheAlarm = createCacheAlarm(prints);
  const tellOwner = createTellOnce(deps);
  const lasting = {
    tellOwner,
    cleared,
    contexts,
    correction,
    compactor,
    cacheAlarm,
    prints,
    ...times,
  };

  return {
    ...createRevisions({ sessions, clock, outdated }),
    compact: (...asked) => compacting.onCommand(...asked),
    [Symbol.asyncDispose]: () => compactor[Symbol.asyncDispose](),

    prepare: (session, chat, person) => contexts.prepare(session, chat, person),

    async *run(input, context, signal) {
      const opened = await withMode(deps, await openTurn(deps, lasting, input, context));
      const timeUp = new AbortController();
      const { time, limits } = opened;
      const deadline = time.limit(limits.maxMs, () => timeUp.abort(new TurnTimeUp()));
      const turn = { ...opened, signal: AbortSignal.any([signal, timeUp.signal]) };
      try {
        let state: TurnState = TURN_START;
        while (state.phase !== 'done') state = yield* step(turn, state);
        compacting.afterTurn(turn);
        return state.outcome;
      } finally {
        deadline[Symbol.dispose]();
        contexts.outdated(input.session);
      }
    },

    async inspect(input) {
      const context = await contexts.prepare(input.session, input.chat, input.person);
      const { signal } = new AbortController();
      const opened = await openTurn(deps, lasting, input, context);
      return contextReport({ ...opened, mode: undefined, signal }, cleared);
    },

    runApproved: (call, signal) => runApproved(deps, call, signal),

    async reset(session) {
      await sessions.append(session, [{ role: 'reset', at: clock.now() }], { durable: true });
      contexts.outdated(session);
    },
  };
}

const MAX_TOLD = 100;

function createTellOnce({ tell }: Pick<AgentDeps, 'tell'>): (text: string) => void {
  const told = new Set<string>();
  return (text) => {
    if (told.has(text) || told.size >= MAX_TOLD) return;
    told.add(text);
    tell?.(text);
  };
}

async function openTurn(
  deps: AgentDeps,
  {
    cleared,
    contexts,
    correction,
    compactor,
    cacheAlarm,
    prints,
    stampsIn,
    zoneName,
    tellOwner,
  }: Lasting,
  input: TurnInput,
  context: PreparedContext,
): Promise<ModeTurn> {
  const { sessions, clock } = deps;
  const settings = withEngine(deps.settings(), input.settings.engine);
  const time = new TurnTime(clock);
  const models = deps.models();
  await models.ready?.(input.settings.model ?? models.defaultModel);
  const { session, turnId } = input;
  const prepared = await contexts.current(context, input.chat, input.person);
  const means = {
    toolbox: withExpand(
      confinedTools(deps.toolbox(), input.confines),
      settings.compaction,
      prepared.history,
    ),
    rights: new TurnRights(input.rights),
  };
  const timeZone = input.person.timeZone ?? settings.timeZone;
  const stampOf = stampsIn(timeZone);
  const asked = deps.asked?.();
  const reading = { cleared, stampOf, canReadBack: () => canReadBack(means) };
  return {
    ...means,
    input,
    settings,
    sessions,
    reader: deps.reader,
    spending: deps.spending,
    correction,
    compactor,
    cacheAlarm,
    tellOwner,
    asked: asked && { ...asked, prints },
    lastCall: new LastCall(),
    clock,
    limits: limitsOf(settings, input.confines),
    prepared,
    expansion: new Expansion(),
    models,
    thread: new Thread({ sessions, session, turnId, ...reading }),
    log: deps.log.child({ session, turnId }),
    zone: zoneName(timeZone),
    time,
    notices: new TurnNotices(),
    shared: new SharedCalls(),
  };
}

/** Helpers, and answers given again, are the main model's alone. */
async function withMode(
  { modes }: AgentDeps,
  opened: ModeTurn,
): Promise<Omit<TurnContext, 'signal'>> {
  const { confines, settings, messages } = opened.input;
  const isPlain = confines !== undefined || messages[0].message.redoes !== undefined;
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

/** @throws the error, or the signal's reason, where the turn has to run again. */
function interruptionBy(error: unknown, turn: TurnContext): Interruption {
  const { aborted, reason } = turn.signal;
  if (aborted && reason instanceof TurnCancelled) return { kind: 'stopped' };
  if (aborted && reason instanceof TurnTimeUp) return { kind: 'time' };
  if (aborted) throw reason;
  if (error instanceof SpendingRefusedError) return { kind: 'failed', text: error.text };
  if (!(error instanceof ProviderError)) throw error;
  turn.log.warn('model call failed', { error });
  return { kind: 'failed', text: failureText(error) };
}

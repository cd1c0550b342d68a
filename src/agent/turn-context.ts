// The context of one turn, shared by all phases.

import type { TurnMode } from '../features/modes/mode.ts';
import { narrowed, type Rights } from '../kernel/access/rights.ts';
import type { MediaReader } from '../kernel/media/media.ts';
import type { AgentEvent } from '../kernel/message/message.ts';
import type { SharedCall, TokenUsage } from '../kernel/message/transcript.ts';
import type { SessionStore } from '../kernel/sessions/store.ts';
import { RecentMap } from '../lib/async.ts';
import type { Logger } from '../lib/logger.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { ModelHandle, ModelRegistry, ModelRequest } from '../providers/provider.ts';
import type { OfferedTool, Toolbox } from '../tools/tool.ts';
import type { Compactor, SpendingGuard, TurnInput } from './agent.ts';
import type { CacheAlarm, RequestNotes } from './fingerprints.ts';
import type { Prepared, RequestedSkill } from './prepared.ts';
import type { PromptSection, sharedSection } from './rules/prompt.ts';
import { type CallBudget, correctedBy } from './rules/tokens.ts';
import type { TurnLimits } from './rules/turn-state.ts';
import type { AgentSettings } from './settings.ts';
import type { Thread } from './thread.ts';

export type ModelCall = {
  readonly handle: ModelHandle;
  readonly request: Omit<ModelRequest, 'model' | 'system' | 'tools'> & {
    readonly system: readonly PromptSection[];
    readonly tools: readonly OfferedTool[];
  };
  /** Of the model, or less where the configuration says so. */
  readonly contextTokens: number;
  readonly budget: CallBudget;
  /** For lack of room in the window: tools by their number, and whether parts of the prompt. */
  readonly leftOut: { readonly tools: number; readonly prompt: boolean };
  /** Estimates in tokens, not corrected. */
  readonly fixedTokens: number;
  readonly threadTokens: number;
  /** Entries of the thread that are shown in other words than were recorded. */
  readonly rewritten: number;
  /** Its beginning changes from call to call on purpose. */
  readonly isUnsteady: boolean;
};

export type TurnContext = {
  readonly input: TurnInput;
  readonly rights: TurnRights;
  readonly prepared: Prepared;
  /** Builds the shared section of the system prompt. */
  readonly sectionOf: typeof sharedSection;
  readonly settings: AgentSettings;
  readonly limits: TurnLimits;
  /** Undefined: the main model alone does the work. */
  readonly mode: TurnMode | undefined;
  readonly models: ModelRegistry;
  readonly toolbox: Toolbox;
  readonly sessions: SessionStore;
  readonly thread: Thread;
  readonly reader: Pick<MediaReader, 'document'>;
  requestedSkills(message: string): Promise<readonly RequestedSkill[]>;
  readonly correction: TokenCorrection;
  readonly spending: SpendingGuard;
  readonly compactor: Compactor;
  readonly cacheAlarm: CacheAlarm;
  /** Sends each text once while the process runs. */
  readonly tellOwner: (text: string) => void;
  /** Undefined: no request log is kept. */
  readonly asked: RequestNotes | undefined;
  /**
   * `note`: added after the question in the calls of this turn, never recorded; see compactor.ts.
   */
  readonly expansion: { note: string | undefined };
  /** Of this turn. */
  readonly lastCall: {
    /** The newest. */
    call: NotedCall | undefined;
    /** `standsOn`: what can change in the turn. */
    planned?: { readonly call: ModelCall; readonly standsOn: readonly unknown[] };
    /** How much tools and prompt are reduced for the last exchange, for the rest of the turn. */
    squeeze: number;
    /** A call waited for a summary; no other one does in this turn. */
    hasWaited: boolean;
  };
  /** The person's zone, by name. */
  readonly zone: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborted by the person, at shutdown, or when the turn's time is up. */
  readonly signal: AbortSignal;
  readonly time: TurnTime;
  /** Of this turn. */
  readonly notices: TurnNotices;
  readonly shared: SharedCalls;
};

// The part of a turn that one tool call needs: a step of a workflow, which no model called, is
// subject to the same rights, questions and limits.

export type CallTurn = Pick<TurnContext, 'input' | 'settings' | 'clock' | 'signal' | 'toolbox'> & {
  readonly rights: Pick<TurnRights, 'current'>;
  readonly thread: Pick<
    Thread,
    'isTainted' | 'knownTexts' | 'attached' | 'isOwnMedia' | 'ordinalOf' | 'callsBefore'
  > &
    Partial<Pick<Thread, 'requestedAt'>>;
};

// The rights of a turn. A message that joins it can only remove rights.

export class TurnRights {
  #current: Rights;

  constructor(rights: Rights) {
    this.#current = rights;
  }

  get current(): Rights {
    return this.#current;
  }

  narrow(rights: Rights): void {
    this.#current = narrowed(this.#current, rights);
  }
}

// Notices for the person while another model than the main one works, sent among the events of the
// turn.

export class TurnNotices {
  #told: string[] = [];
  readonly #kept = new Set<string>();
  #news = Promise.withResolvers<void>();

  /** Sent with the current or next work. */
  tell(text: string): void {
    this.#told.push(text);
    this.#news.resolve();
  }

  /** Added below the answer: a plain notice disappears with the next text. */
  keep(text: string): void {
    this.#kept.add(text);
  }

  /** A notice that is also added below the answer. */
  lasting(text: string): AgentEvent {
    this.keep(text);
    return { type: 'notice', text };
  }

  get kept(): readonly string[] {
    return [...this.#kept];
  }

  /** Yields notices while `work` runs. @throws as `work` does */
  async *during<Result>(work: Promise<Result>): AsyncGenerator<AgentEvent, Result, void> {
    let isOver = false;
    const end = () => {
      isOver = true;
    };
    const over = work.then(end, end);
    while (true) {
      await Promise.race([over, this.#news.promise]);
      this.#news = Promise.withResolvers<void>();
      for (const text of this.#told.splice(0)) yield { type: 'notice', text };
      if (isOver && this.#told.length === 0) return work;
    }
  }
}

// The time of one turn, or of one call. It pauses while it waits for a slot of a local model
// server.

type Limit = { readonly atMs: number; readonly onUp: () => void };

export class TurnTime {
  readonly #clock: Clock;
  #countedMs = 0;
  /** Undefined while the time is paused. */
  #since: number | undefined;
  #limit: Limit | undefined;
  #deadline: Disposable | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.monotonic();
  }

  elapsedMs(): number {
    const running = this.#since === undefined ? 0 : this.#clock.monotonic() - this.#since;
    return Math.round(this.#countedMs + running);
  }

  /** Calls `onUp` once `maxMs` more are counted, unless disposed first. */
  limit(maxMs: number, onUp: () => void): Disposable {
    this.#limit = { atMs: this.elapsedMs() + maxMs, onUp };
    this.#arm();
    return { [Symbol.dispose]: () => this.#deadline?.[Symbol.dispose]() };
  }

  standStill(): void {
    if (this.#since === undefined) return;
    this.#countedMs += this.#clock.monotonic() - this.#since;
    this.#since = undefined;
    this.#deadline?.[Symbol.dispose]();
  }

  goOn(): void {
    if (this.#since !== undefined) return;
    this.#since = this.#clock.monotonic();
    this.#arm();
  }

  #arm(): void {
    if (this.#limit === undefined) return;
    const { atMs, onUp } = this.#limit;
    this.#deadline = this.#clock.timer(atMs - this.elapsedMs(), onUp);
  }
}

// Model calls within a turn that no entry records: a router's decision, a digest, a check, an
// abandoned call. The end of the turn records them, so that they are counted.

export class SharedCalls {
  readonly #restarted: readonly SharedCall[];
  #calls: readonly SharedCall[] = [];

  constructor(restarted: readonly SharedCall[] = []) {
    this.#restarted = [...restarted];
  }

  add(call: SharedCall): void {
    this.#calls = [...this.#calls, call];
  }

  /** An entry covers these calls: the newest of the model, as many as its usage includes. */
  recorded(model: string, usage: TokenUsage | undefined): void {
    const total = tokensOf(usage);
    const covered = new Set<SharedCall>();
    let tokens = 0;
    for (const call of this.#calls.filter((each) => each.model === model).toReversed()) {
      const isWhole = covered.size > 0 && tokens >= total;
      if (isWhole || tokens + tokensOf(call.usage) > total) break;
      covered.add(call);
      tokens += tokensOf(call.usage);
    }
    this.#calls = this.#calls.filter((call) => !covered.has(call));
  }

  get unrecorded(): readonly SharedCall[] {
    return [...this.#restarted, ...this.#calls];
  }
}

const tokensOf = (usage: TokenUsage | undefined) =>
  usage === undefined ? 0 : usage.inputTokens + usage.outputTokens;

// Learns per model how the estimate of tokens differs from the provider's count.

const MAX_MODELS = 64;

type TokenCorrection = ReturnType<typeof createTokenCorrection>;

export function createTokenCorrection() {
  const factors = new RecentMap<string, number>(MAX_MODELS);
  return {
    /** Factor for an estimate. */
    factor: (model: string) => factors.get(model) ?? 1,
    observe(model: string, estimated: number, actual: number): void {
      const next = correctedBy(factors.get(model), estimated, actual);
      if (next === undefined) return;
      factors.set(model, next);
    },
  };
}

export type CalledModel = Pick<ModelHandle, 'name' | 'contextTokens'>;

export type NotedCall = {
  readonly handle: CalledModel;
  /** Expected tokens. */
  readonly tokens: number;
  /** Of these, prompt and tools. */
  readonly fixedTokens: number;
};

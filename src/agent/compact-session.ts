// When a session is summed up: behind a turn whose call came above the watermark, and when a person
// asks for it.

import type { Payer } from '../features/spending/rules/budget-limits.ts';
import type { SessionKey } from '../kernel/message/ids.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import { clearOldResults } from './clear-old-results.ts';
import type { CompactionReport, CompactionRequest, Compactor } from './compaction.ts';
import type { CalledModel, NotedCall } from './last-call.ts';
import { notedCall, planCall } from './model-call.ts';
import { type CompactionEngine, conversationRoom, watermarkTokens } from './rules/compaction.ts';
import { callBudget } from './rules/tokens.ts';
import { type AgentSettings, withEngine } from './settings.ts';
import type { TurnContext } from './turn-context.ts';

export interface Compacting {
  afterTurn(turn: TurnContext): void;
  onCommand(
    session: SessionKey,
    payer: Payer,
    model: string | undefined,
    engine: CompactionEngine | undefined,
  ): Promise<CompactionReport>;
}

/** Longest wait of a person who asked for it; it may take several calls. */
const COMMAND_DEADLINE_MS = 180_000;
/** Prompt and tools, of what a call may take, where none was made. */
const USUAL_FIXED_SHARE = 0.4;

export type CompactingDeps = {
  readonly clock: Clock;
  models(): ModelRegistry;
  settings(): AgentSettings;
};

export function createCompacting(
  compactor: Compactor,
  { clock, models, settings }: CompactingDeps,
): Compacting {
  return {
    afterTurn(turn) {
      const { call } = turn.lastCall;
      if (call === undefined || !turn.settings.compaction.enabled) return;
      const mark = watermarkTokens(turn.settings.compaction, sizeOf(turn.settings, call.handle));
      if (call.tokens <= mark) return;
      const next = nextCall(turn, call.handle);
      if (next.tokens > mark) compactor.inBackground(requestOf(turn, next));
    },
    async onCommand(session, payer, model, engine) {
      const { compaction, ...rest } = withEngine(settings(), engine);
      const handle = models().resolve(model ?? models().defaultModel);
      const size = sizeOf(rest, handle);
      const fixedTokens = watermarkTokens(compaction, size) * USUAL_FIXED_SHARE;
      const roomTokens = conversationRoom(compaction, size, { fixedTokens, factor: 1 });
      const request = {
        session,
        payer,
        model: handle.name,
        policy: compaction,
        size: { ...size, roomTokens },
      };
      const late = new AbortController();
      const deadline = clock.timer(COMMAND_DEADLINE_MS, () => late.abort());
      try {
        return await compactor.now({ ...request, keepTokens: 0 }, late.signal);
      } catch (error) {
        if (late.signal.aborted) return { kind: 'failed' };
        throw error;
      } finally {
        deadline[Symbol.dispose]();
      }
    },
  };
}

/** What the next turn would begin with: the results that this one read are no longer needed. */
function nextCall(turn: TurnContext, { name }: CalledModel): NotedCall {
  const asked = { model: name, ask: { kind: 'work' } } as const;
  const planned = planCall(turn, asked);
  return notedCall(turn, clearOldResults(turn, planned) ? planCall(turn, asked) : planned);
}

/** Whoever wrote last pays. */
export function requestOf(
  turn: TurnContext,
  { handle, fixedTokens }: Pick<NotedCall, 'handle' | 'fixedTokens'>,
): CompactionRequest {
  const { messages, session } = turn.input;
  const payer = (messages.at(-1) ?? messages[0]).message;
  const policy = turn.settings.compaction;
  const size = sizeOf(turn.settings, handle);
  const factor = turn.correction.factor(handle.name);
  const roomTokens = conversationRoom(policy, size, { fixedTokens, factor });
  return { session, payer, model: handle.name, policy, size: { ...size, roomTokens } };
}

function sizeOf(
  { maxContextTokens, maxTokens }: Pick<AgentSettings, 'maxContextTokens' | 'maxTokens'>,
  handle: CalledModel,
) {
  const contextTokens = Math.min(handle.contextTokens, maxContextTokens);
  return { contextTokens, budget: callBudget(contextTokens, maxTokens) };
}

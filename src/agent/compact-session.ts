// When a session is summed up: behind a turn whose call came above the watermark, and when a person
// asks for it.

import { callBudget } from '../core/budget.ts';
import type { Payer } from '../core/budget-limits.ts';
import { type CompactionEngine, watermarkTokens } from '../core/compaction.ts';
import type { SessionKey } from '../core/ids.ts';
import type { Clock } from '../lib/clock.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import type { CompactionReport, CompactionRequest, Compactor } from './compaction.ts';
import type { CalledModel } from './last-call.ts';
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
      if (call.tokens > mark) compactor.inBackground(requestOf(turn, call.handle));
    },
    async onCommand(session, payer, model, engine) {
      const { compaction, ...rest } = withEngine(settings(), engine);
      const handle = models().resolve(model ?? models().defaultModel);
      const size = sizeOf(rest, handle);
      const request = { session, payer, model: handle.name, policy: compaction, size };
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

/** Whoever wrote last pays. */
export function requestOf(turn: TurnContext, handle: CalledModel): CompactionRequest {
  const { messages, session } = turn.input;
  const payer = (messages.at(-1) ?? messages[0]).message;
  const policy = turn.settings.compaction;
  return { session, payer, model: handle.name, policy, size: sizeOf(turn.settings, handle) };
}

function sizeOf(
  { maxContextTokens, maxTokens }: Pick<AgentSettings, 'maxContextTokens' | 'maxTokens'>,
  handle: CalledModel,
) {
  const contextTokens = Math.min(handle.contextTokens, maxContextTokens);
  return { contextTokens, budget: callBudget(contextTokens, maxTokens) };
}

// CONTRACT of a mode, which decides who speaks before each model call of a turn. Decisions of
// another model are recorded and executed like those of the main model, so that guard, rights,
// crash recovery and stops are the same.

import type { CallReport } from '../../agent/rules/turn-closing.ts';
import type { Ask, MainCue, NonEmpty } from '../../agent/rules/turn-state.ts';
import type { AgentEvent } from '../../kernel/message/message.ts';
import type { TokenUsage, ToolCall } from '../../kernel/message/transcript.ts';
import type { Toolbox } from '../../tools/tool.ts';

/** `arguments`: JSON, as a model writes it. */
export type CueCall = Pick<ToolCall, 'name' | 'arguments'>;

/** The model that decided or spoke instead of the main model, for the record. */
export type Speaker = { readonly model: string; readonly usage?: TokenUsage };

export type Cue =
  /** `tokens`: used for this decision. */
  | ({ readonly kind: 'main'; readonly tokens?: number } & { readonly main: MainCue })
  | { readonly kind: 'calls'; readonly by: Speaker; readonly calls: NonEmpty<CueCall> }
  | { readonly kind: 'answer'; readonly by: Speaker; readonly text: string };

export type Main = Extract<Cue, { readonly kind: 'main' }>;
export type Answer = Extract<Cue, { readonly kind: 'answer' }>;

export interface TurnMode {
  /**
   * The tools of the turn, together with calls that the mode itself answers; those are offered to
   * no model.
   */
  readonly toolbox: Toolbox;
  /**
   * Runs before each model call in which tools are allowed, and after a crash again on the recorded
   * entries of the turn.
   * @throws ProviderError, SpendingRefusedError or the reason of the signal
   */
  cue?(ask: Ask, signal: AbortSignal): AsyncGenerator<AgentEvent, Cue, void>;
  /**
   * The answer of a turn that a limit ends; undefined: the main model concludes. Calls no model.
   */
  closing?(): Promise<Answer | undefined>;
  /** What the main model gets of a result, before it is recorded. Never throws. */
  shown?(call: ToolCall, report: CallReport, signal: AbortSignal): Promise<CallReport>;
}

export const WITH_TOOLS = { kind: 'main', main: { tools: 'offered', notes: [] } } as const;

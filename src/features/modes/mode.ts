// CONTRACT of a mode: who speaks before each model call of a turn. What another model decides is recorded
// and runs like what the main model calls, so that guard, rights, crash recovery and stops are the same.

import type { CallReport } from '../../agent/rules/turn-closing.ts';
import type { Ask, MainCue, NonEmpty } from '../../agent/rules/turn-state.ts';
import type { AgentEvent } from '../../kernel/message/message.ts';
import type { TokenUsage, ToolCall } from '../../kernel/message/transcript.ts';
import type { Toolbox } from '../../tools/tool.ts';

/** `arguments`: JSON, as a model would write it. */
export type CueCall = Pick<ToolCall, 'name' | 'arguments'>;

/** Who decided or spoke instead of the main model, for the record. */
export type Speaker = { readonly model: string; readonly usage?: TokenUsage };

export type Cue =
  /** `tokens`: taken to find that out. */
  | ({ readonly kind: 'main'; readonly tokens?: number } & { readonly main: MainCue })
  | { readonly kind: 'calls'; readonly by: Speaker; readonly calls: NonEmpty<CueCall> }
  | { readonly kind: 'answer'; readonly by: Speaker; readonly text: string };

export interface TurnMode {
  /** The tools of the turn, with what is no tool and the mode itself answers; it is offered to nobody. */
  readonly toolbox: Toolbox;
  /**
   * Asked before each model call in which something may be done; after a crash again, over what is
   * recorded of the turn. @throws ProviderError, SpendingRefusedError or the reason of the signal
   */
  cue?(ask: Ask, signal: AbortSignal): AsyncGenerator<AgentEvent, Cue, void>;
  /**
   * What the turn ends with where a limit ends it; undefined: the main model concludes. Asks nobody.
   */
  closing?(): Promise<Extract<Cue, { readonly kind: 'answer' }> | undefined>;
  /** What the main model is shown of a result, before it is recorded. Never throws. */
  shown?(call: ToolCall, report: CallReport, signal: AbortSignal): Promise<CallReport>;
}

export const WITH_TOOLS = { kind: 'main', main: { tools: 'offered', notes: [] } } as const;

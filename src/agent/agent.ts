// CONTRACT of the agent: one turn as an async generator of events that returns an outcome. The loop
// behind it is `perform(phase)` against the pure state machine in core/turn.ts.

import type { AgentEvent, TurnOutcome } from '../core/event.ts';
import type { SessionKey, TurnId } from '../core/ids.ts';
import type { ChatRef, InboundMessage } from '../core/message.ts';

/** A message the agent is to answer, with its place in the session's order. */
export type TurnMessage = { readonly seq: number; readonly message: InboundMessage };

export type TurnSettings = {
  /** Model chosen for this session; undefined = the default. */
  readonly model?: string;
  /** Tokens to think; 0 = off. */
  readonly thinkingBudget: number;
};

export type TurnInput = {
  readonly turnId: TurnId;
  readonly session: SessionKey;
  readonly chat: ChatRef;
  readonly messages: readonly [TurnMessage, ...TurnMessage[]];
  readonly settings: TurnSettings;
  /** Messages that came meanwhile and steer the turn, taken before each model call. */
  steer(): Promise<readonly TurnMessage[]>;
  /** Sends a text to the chat before the turn's answer. */
  say(markdown: string, ordinal: number): Promise<void>;
};

/** Work done inside the coalescing window: it depends on the session, not on the messages. */
export interface PreparedContext {
  readonly session: SessionKey;
}

export interface Agent {
  prepare(session: SessionKey, chat: ChatRef): Promise<PreparedContext>;
  run(
    input: TurnInput,
    context: PreparedContext,
    signal: AbortSignal,
  ): AsyncGenerator<AgentEvent, TurnOutcome, void>;
  /** Shows the person's new start in the transcript. */
  reset(session: SessionKey): Promise<void>;
}

// Turn stages: what the kernel and its features do around a turn and with its messages. The
// composition root lists them all, outermost first.

import type { Agent, TurnMessage } from '../../agent/agent.ts';
import type { Permits } from '../../lib/async.ts';
import type { QueuedMessage, Turn, TurnResult } from '../bus/bus.ts';
import type { SessionKey } from '../message/ids.ts';
import type { AgentEvent, InboundMessage, OutboundDraft, TurnOutcome } from '../message/message.ts';
import { inOrder } from '../ports.ts';

export type HandledTurn = TurnResult & {
  /** How the agent's turn ended; absent if the agent did not run. */
  readonly ending?: TurnOutcome['kind'];
  /** The last message that the agent answered. */
  readonly newest?: InboundMessage;
};

/** What the dispatcher runs a turn with. */
export type TurnSetup = { readonly agent: Agent; readonly permits: Permits };

/**
 * Runs the rest of the turn. `change` gets the setup that the outer stages have left and gives the parts
 * that the inner ones get instead: a stage restricts what it was given and removes no restriction.
 */
export type NextStage = (
  turn: Turn,
  change?: (setup: TurnSetup) => Partial<TurnSetup>,
) => Promise<HandledTurn>;

export type TurnScope = {
  readonly session: SessionKey;
  readonly signal: AbortSignal;
  /** Updates the live view of the turn. */
  show(event: AgentEvent): void;
};

export type TurnStage = {
  readonly name: string;
  /** Around the later stages and the dispatcher; holds no model permit. */
  run?(turn: Turn, next: NextStage): Promise<HandledTurn>;
  /**
   * The messages of a turn that every stage has passed, and each one that joins it, before
   * coalescing.
   */
  arrival?(
    messages: readonly QueuedMessage[],
    signal: AbortSignal,
  ): Promise<readonly QueuedMessage[]>;
  /**
   * Each message as the agent gets it, also one that joins the running turn; a retry returns the
   * same.
   */
  message?(message: TurnMessage, turn: TurnScope): Promise<TurnMessage>;
  /**
   * The text for the chat when the message becomes a dead letter; undefined: a later stage or the
   * dispatcher decides.
   */
  onPoison?(turn: Turn): readonly OutboundDraft[] | undefined;
};

type Innermost = (turn: Turn, setup: TurnSetup) => Promise<HandledTurn>;

/**
 * @param order every name, outermost first; the stage of a feature that is off may be missing
 * @throws OrderError for a stage that the order does not name, and for two of one name
 */
export function createTurnStages(order: readonly string[], given: readonly TurnStage[]) {
  const stages = inOrder('turn stages', order, given);
  return {
    /** All stages around `innermost`. */
    around: (innermost: Innermost): Innermost =>
      stages.reduceRight<Innermost>(
        (inner, stage) => (turn, setup) =>
          stage.run === undefined
            ? inner(turn, setup)
            : stage.run(turn, (later, change) => inner(later, { ...setup, ...change?.(setup) })),
        innermost,
      ),
    async arrival(
      messages: readonly QueuedMessage[],
      signal: AbortSignal,
    ): Promise<readonly QueuedMessage[]> {
      let arrived = messages;
      for (const stage of stages) arrived = (await stage.arrival?.(arrived, signal)) ?? arrived;
      return arrived;
    },
    async message(message: TurnMessage, turn: TurnScope): Promise<TurnMessage> {
      let result = message;
      for (const stage of stages) result = (await stage.message?.(result, turn)) ?? result;
      return result;
    },
    onPoison(turn: Turn): readonly OutboundDraft[] | undefined {
      for (const stage of stages) {
        const drafts = stage.onPoison?.(turn);
        if (drafts !== undefined) return drafts;
      }
      return undefined;
    },
  };
}

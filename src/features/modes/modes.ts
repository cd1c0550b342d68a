// CONTRACT of all modes: which one a turn has, and whether it can work.

import type { TurnContext } from '../../agent/turn-context.ts';
import type { TurnMode } from './mode.ts';
import type { AgentMode } from './rules/mode.ts';

/** A turn that begins; its own toolbox is the one without the mode. */
export type ModeTurn = Omit<TurnContext, 'signal' | 'mode'>;

type Told = readonly string[] | Promise<readonly string[]>;

/** One of the modes, over all turns. */
export interface ModeKind {
  /** What keeps it from working now, a sentence each; empty: it can. */
  problems(): Told;
  /** For people: what it works with, and how that is. */
  about(): Told;
  open(turn: ModeTurn): Promise<TurnMode>;
}

export interface Modes {
  /** Undefined: inline, also where the mode cannot work. `chosen`: for the session. */
  open(chosen: AgentMode | undefined, turn: ModeTurn): Promise<TurnMode | undefined>;
}

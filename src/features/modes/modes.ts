// CONTRACTS of all modes: their dependencies, the mode of a turn, and what people see of modes.

import type { TurnContext } from '../../agent/turn-context.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { AgentMode } from '../../kernel/config/settings-fields.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import type { Price } from '../spending/index.ts';
import type { AgentFiles } from './agent-files.ts';
import type { TurnMode } from './mode.ts';
import type { RoleHealth } from './role-health.ts';
import type { TraceRecord } from './trace-files.ts';

/** A turn at its start; its toolbox is the one without the mode. */
export type ModeTurn = Omit<TurnContext, 'signal' | 'mode'>;

type Told = readonly string[] | Promise<readonly string[]>;

/** One mode, over all turns. */
export interface ModeKind {
  /** Why it cannot work now, one sentence each; empty: it can. */
  problems(): Told;
  /** For people: its models, and their state. */
  about(): Told;
  open(turn: ModeTurn): Promise<TurnMode>;
}

/** The dependencies of all modes, over all turns. */
export type ModeDeps = {
  readonly health: RoleHealth;
  readonly agents: AgentFiles;
  /** Read at each turn. */
  settings(): Pick<Config['agents'], 'trio' | 'delegation' | 'supervisor'>;
  models(): ModelRegistry;
  /** Undefined where the price is unknown. */
  priceOf(model: string): Price | undefined;
  trace(record: TraceRecord): void;
};

export type ModeKinds = Readonly<Partial<Record<AgentMode, ModeKind>>>;

export interface Modes {
  /** Undefined: inline, also where the mode cannot work. `chosen`: for the session. */
  open(chosen: AgentMode | undefined, turn: ModeTurn): Promise<TurnMode | undefined>;
}

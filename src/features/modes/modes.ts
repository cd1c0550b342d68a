// CONTRACTS of all modes: what they work with, which one a turn has, and what people are told of them.

import type { TurnContext } from '../../agent/turn-context.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { AgentMode } from '../../kernel/config/settings-fields.ts';
import type { SessionKey, TurnId } from '../../kernel/message/ids.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import type { Price } from '../spending/index.ts';
import type { AgentFiles } from './agent-files.ts';
import type { TurnMode } from './mode.ts';
import type { RoleHealth } from './role-health.ts';
import type { TraceRecord } from './trace-files.ts';

/** A turn that begins; its own toolbox is the one without the mode. */
export type ModeTurn = Omit<TurnContext, 'signal' | 'mode'>;

type Told = readonly string[] | Promise<readonly string[]>;

/** One of the modes, over all turns. */
export interface ModeKind {
  /** What keeps it from working now, a sentence each; empty: it can. */
  problems(): Told;
  /** For people: what it works with, and the state of that. */
  about(): Told;
  open(turn: ModeTurn): Promise<TurnMode>;
}

/** What all of them work with, over all turns. */
export type ModeDeps = {
  readonly health: RoleHealth;
  readonly agents: AgentFiles;
  /** Asked at each turn. */
  settings(): Pick<Config['agents'], 'trio' | 'delegation' | 'supervisor'>;
  models(): ModelRegistry;
  /** Undefined where nobody knows it. */
  priceOf(model: string): Price | undefined;
  trace(record: TraceRecord): void;
};

export type ModeKinds = Readonly<Partial<Record<AgentMode, ModeKind>>>;

export interface Modes {
  /** Undefined: inline, also where the mode cannot work. `chosen`: for the session. */
  open(chosen: AgentMode | undefined, turn: ModeTurn): Promise<TurnMode | undefined>;
}

/** For people. */
export interface ModeService {
  /** Of a conversation that has chosen none. */
  configured(): AgentMode;
  /** What keeps it from working, a sentence each; empty: it can. */
  problems(mode: AgentMode): Promise<readonly string[]>;
  /** What it works with, in a few words. */
  about(mode: AgentMode): Promise<readonly string[]>;
  /** Which of several models worked on a turn, a line each; empty: the main model alone, or unknown. */
  work(session: SessionKey, turn: TurnId): Promise<readonly string[]>;
}

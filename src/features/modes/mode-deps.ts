// What the modes work with, over all turns.

import type { ModelRegistry } from '../../providers/provider.ts';
import type { Price } from '../spending/rules/spending.ts';
import type { AgentFiles } from './agent-files.ts';
import type { TurnMode } from './mode.ts';
import type { ModeTurn } from './modes.ts';
import type { RoleHealth } from './role-health.ts';
import type { DelegationConfig, SupervisorConfig, TrioConfig } from './settings.ts';
import type { TraceRecord } from './trace.ts';

export type TrioDeps = {
  readonly health: RoleHealth;
  /** Asked at each turn. */
  settings(): TrioConfig;
  models(): ModelRegistry;
  trace(record: TraceRecord): void;
  /** Long results, where a runner is there. */
  digests(turn: ModeTurn): Promise<Pick<TurnMode, 'shown'>>;
};

export type DelegationDeps = {
  readonly health: RoleHealth;
  /** Asked at each turn. */
  settings(): DelegationConfig;
  models(): ModelRegistry;
  /** Undefined where nobody knows it. */
  priceOf(model: string): Price | undefined;
};

export type SupervisorDeps = {
  readonly health: RoleHealth;
  readonly agents: AgentFiles;
  /** Asked at each turn. */
  settings(): SupervisorConfig;
  models(): ModelRegistry;
};

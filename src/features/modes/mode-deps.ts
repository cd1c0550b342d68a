// What the modes work with, over all turns.

import type { SpendingGuard } from '../../agent/spending.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Contributions } from '../../kernel/contributions.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import type { SessionSettingsStore } from '../../kernel/turns/session-settings.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import type { Price } from '../spending/rules/spending.ts';
import type { AgentFiles } from './agent-files.ts';
import type { TurnMode } from './mode.ts';
import type { ModeKind, ModeTurn } from './modes.ts';
import type { RoleHealth } from './role-health.ts';
import type { AgentMode } from './rules/mode.ts';
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

export type ModeParts = {
  readonly live: LiveConfig;
  readonly settings: SessionSettingsStore;
  readonly sessions: Pick<SessionStore, 'turn'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly spending: SpendingGuard;
  readonly home: Pick<Home, 'agents' | 'traces'>;
  models(): ModelRegistry;
  /** An owner is told. */
  tell(text: string): void;
  readonly add: Contributions;
};

export type ModeKinds = Readonly<Partial<Record<AgentMode, ModeKind>>>;

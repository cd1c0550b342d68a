// The modes beside inline, with what they share: the health of their models and its probes. Loaded when the
// first turn or the configuration asks for one of them.

import type { SpendingGuard } from '../../agent/spending.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import type { SessionSettingsStore } from '../../kernel/turns/session-settings.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import { priceOf } from '../../providers/rules/model-names.ts';
import { openAgentFiles } from './agent-files.ts';
import { createDelegation } from './digests.ts';
import type { ModeDeps, ModeKinds } from './modes.ts';
import { probeRoles, RoleHealth } from './role-health.ts';
import { createSupervisor } from './supervisor.ts';
import type { TraceFiles } from './trace-files.ts';
import { createTrio } from './trio.ts';

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
};

export type LoadedModes = {
  readonly kinds: ModeKinds;
  /** Asks models that failed whether they answer again. */
  probe(signal: AbortSignal): Promise<void>;
};

export function createModeKinds(parts: ModeParts, traces: TraceFiles): LoadedModes {
  const { live, models, clock, spending } = parts;
  const settings = () => live.config.agents;
  const health = new RoleHealth({
    clock,
    announce: parts.tell,
    policy: () => {
      const { failures, cooldownSecs } = settings().circuit;
      return { failures, cooldownMs: cooldownSecs * 1000 };
    },
  });
  const deps: ModeDeps = {
    ...{ health, models, settings, agents: openAgentFiles(parts.home) },
    priceOf(model) {
      const { limits, models: known } = live.config;
      return priceOf(model, known.prices, limits.budget.currency);
    },
    trace: (record) => settings().trio.trace && traces.write(record),
  };
  const everyMs = () => settings().circuit.probeSecs * 1000;
  return {
    kinds: {
      delegated: createDelegation(deps),
      trio: createTrio(deps),
      supervisor: createSupervisor(deps),
    },
    probe: (signal) => probeRoles({ health, spending, clock, models, everyMs }, signal),
  };
}

// Builds the modes of the agent: which models share the work of a turn, and what people see of that.

import { createModes, type ModeKinds } from '../agent/modes/create-modes.ts';
import { createDelegation, openDigests } from '../agent/modes/delegation.ts';
import type { Modes } from '../agent/modes/modes.ts';
import { RoleHealth } from '../agent/modes/role-health.ts';
import { probeRoles } from '../agent/modes/role-probes.ts';
import { createSupervisor } from '../agent/modes/supervisor.ts';
import { createTrio } from '../agent/modes/trio.ts';
import type { SpendingGuard } from '../agent/spending.ts';
import { priceOf } from '../core/model-prices.ts';
import { supervisedSteps } from '../core/supervised-roles.ts';
import type { StatusSource } from '../gateway/command.ts';
import type { ModeDesk } from '../gateway/mode-desk.ts';
import type { SessionSettingsStore } from '../gateway/session-settings.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import type { SessionStore } from '../sessions/store.ts';
import type { BackgroundWork } from './gateway-service.ts';
import type { Home } from './home.ts';
import type { LiveConfig } from './live-config.ts';
import { openAgentFiles } from './open-agent-files.ts';
import { createTraceFiles } from './trace-files.ts';

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

export type BuiltModes = {
  readonly modes: Modes;
  readonly desk: ModeDesk;
  readonly status: StatusSource;
  readonly background: readonly BackgroundWork[];
  readonly traces: Pick<ReturnType<typeof createTraceFiles>, 'forget'>;
};

export function buildModes(parts: ModeParts): BuiltModes {
  const { live, models, clock, spending, tell } = parts;
  const agents = () => live.config.agents;
  const health = new RoleHealth({
    clock,
    announce: tell,
    policy: () => {
      const { failures, cooldownSecs } = agents().circuit;
      return { failures, cooldownMs: cooldownSecs * 1000 };
    },
  });
  const delegating = {
    health,
    models,
    settings: () => agents().delegation,
    priceOf(model: string) {
      const { limits, models: known } = live.config;
      return priceOf(model, known.prices, limits.budget.currency);
    },
  };
  const traces = createTraceFiles({ ...parts, traces: parts.home.traces });
  const trio = createTrio({
    health,
    models,
    settings: () => agents().trio,
    trace: (record) => agents().trio.trace && traces.write(record),
    digests: async (turn) =>
      agents().delegation.model === '' ? {} : openDigests(turn, delegating),
  });
  const supervising = { agents: openAgentFiles(parts.home), settings: () => agents().supervisor };
  const supervisor = createSupervisor({ health, models, ...supervising });
  const kinds: ModeKinds = { delegated: createDelegation(delegating), trio, supervisor };
  const probing = { health, spending, clock, models };
  const everyMs = () => agents().circuit.probeSecs * 1000;
  return {
    ...shownModes(kinds, parts),
    modes: createModes(kinds, () => agents().mode),
    traces,
    background: [
      { name: 'model probes', run: (signal) => probeRoles({ ...probing, everyMs }, signal) },
    ],
  };
}

function shownModes(
  kinds: ModeKinds,
  { live, settings, sessions }: ModeParts,
): Pick<BuiltModes, 'desk' | 'status'> {
  const configured = () => live.config.agents.mode;
  const desk: ModeDesk = {
    configured,
    async problems(mode) {
      if (mode === 'inline') return [];
      return kinds[mode]?.problems() ?? ['nothing is set up for it'];
    },
    about: async (mode) => kinds[mode]?.about() ?? ['One model does all.'],
    work: async (session, turn) => supervisedSteps(await sessions.turn(session, turn)),
  };
  return {
    desk,
    async status(session) {
      const mode = (await settings.get(session)).mode ?? configured();
      if (mode === 'inline') return [];
      const problems = await desk.problems(mode);
      return problems.length === 0
        ? [`Mode: ${mode}`, ...(await desk.about(mode))]
        : [`Mode: ${mode}, cannot work: ${problems.join('; ')}`];
    },
  };
}

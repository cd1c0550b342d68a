// Builds the modes of the agent: which models share the work of a turn, and what people see of that.

import type { SpendingGuard } from '../../agent/spending.ts';
import type { StatusSource } from '../../kernel/commands/command.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Contributions } from '../../kernel/contributions.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import type { SessionSettingsStore } from '../../kernel/turns/session-settings.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import { priceOf } from '../../providers/rules/model-names.ts';
import { openAgentFiles } from './agent-files.ts';
import { createDelegation, openDigests } from './delegation.ts';
import type { ModeDesk } from './mode-desk.ts';
import type { ModeKind, Modes } from './modes.ts';
import { RoleHealth } from './role-health.ts';
import { probeRoles } from './role-probes.ts';
import type { AgentMode } from './rules/mode.ts';
import { supervisedSteps } from './rules/supervised-turn.ts';
import { createSupervisor } from './supervisor.ts';
import { createTraceFiles } from './trace-files.ts';
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
  readonly add: Contributions;
};

export type BuiltModes = {
  readonly modes: Modes;
  readonly desk: ModeDesk;
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
  const { desk, status } = shownModes(kinds, parts);
  const { add } = parts;
  add.personalData(traces);
  add.status(status);
  add.task({ name: 'model probes', run: (signal) => probeRoles({ ...probing, everyMs }, signal) });
  return { desk, modes: createModes(kinds, () => agents().mode) };
}

function shownModes(
  kinds: ModeKinds,
  { live, settings, sessions }: ModeParts,
): { readonly desk: ModeDesk; readonly status: StatusSource } {
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

// The modes there are. A turn is inline, and nothing of the others is read, unless its mode says otherwise.

export type ModeKinds = Readonly<Partial<Record<AgentMode, ModeKind>>>;

export function createModes(kinds: ModeKinds, configured: () => AgentMode): Modes {
  return {
    async open(chosen, turn) {
      const kind = kinds[chosen ?? configured()];
      if (kind === undefined) return undefined;
      const problems = await kind.problems();
      if (problems.length === 0) return kind.open(turn);
      turn.log.warn('mode cannot work, the main model answers alone', { problems });
      return undefined;
    },
  };
}

// The modes there are beside inline, with what they share: the health of their models and its probes. Loaded
// when the first turn or the configuration asks for one of them.

import { priceOf } from '../../providers/rules/model-names.ts';
import { openAgentFiles } from './agent-files.ts';
import { createDelegation, openDigests } from './delegation.ts';
import type { ModeKinds, ModeParts } from './mode-deps.ts';
import { RoleHealth } from './role-health.ts';
import { probeRoles } from './role-probes.ts';
import { createSupervisor } from './supervisor.ts';
import type { TraceFiles } from './trace-files.ts';
import { createTrio } from './trio.ts';

export type LoadedModes = {
  readonly kinds: ModeKinds;
  /** Asks models that failed whether they answer again. */
  probe(signal: AbortSignal): Promise<void>;
};

export function createModeKinds(parts: ModeParts, traces: TraceFiles): LoadedModes {
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
  const everyMs = () => agents().circuit.probeSecs * 1000;
  return {
    kinds: { delegated: createDelegation(delegating), trio, supervisor },
    probe: (signal) => probeRoles({ health, spending, clock, models, everyMs }, signal),
  };
}

// The modes other than inline, with the health of their models and its probes. Loaded when the
// first turn or the configuration selects one of them.

import type { SpendingGuard } from '../../agent/agent.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { t } from '../../lib/texts.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import { priceOf } from '../../providers/rules/model-names.ts';
import { type AgentRoster, openAgentFiles } from './agent-files.ts';
import { roleOf } from './ask-role.ts';
import { createDelegation } from './digests.ts';
import type { ModeDeps, ModeKind } from './modes.ts';
import { missing, probeRoles, RoleHealth } from './role-health.ts';
import { SupervisorTurn } from './supervisor-turn.ts';
import type { TraceFiles } from './trace-files.ts';
import { createTrio } from './trio.ts';

export type ModeParts = Pick<Kernel, 'live' | 'clock' | 'log' | 'sessions' | 'home'> & {
  readonly spending: SpendingGuard;
  models(): ModelRegistry;
  /** Sends a notice to the owner. */
  tell(text: string): void;
};

export function createModeKinds(parts: ModeParts, traces: TraceFiles) {
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
    /** Probes models that failed. */
    probe: (signal: AbortSignal) =>
      probeRoles({ health, spending, clock, models, everyMs }, signal),
  };
}

// The supervisor hands tasks to declared specialists and queries services, round by round, until it
// finishes; then the answer is written. Where it does not respond, the main model continues with
// its tools.

export function createSupervisor(deps: ModeDeps): ModeKind {
  const { health, models } = deps;
  const settings = () => deps.settings().supervisor;
  return {
    async problems() {
      const { agents } = await deps.agents.roster();
      const usable = agents.some(({ kind }) => kind === 'valid');
      const none = usable ? [] : [t`no specialist can be used`, ...brokenOf(agents)];
      return [...missing(models, 'agents.supervisor.model', settings().model, false), ...none];
    },
    async about() {
      const { agents, problems } = await deps.agents.roster();
      const main = models().defaultModel;
      const { model, services, maxSteps } = settings();
      const specialists = agents.flatMap((each) => {
        if (each.kind === 'broken') return [];
        const who = roleOf(each.value, models(), main);
        const unserved = missing(models, t`agents/${each.value.name}.yaml: model`, who.model, true);
        return unserved.length === 0 ? [health.sentence(who)] : unserved;
      });
      return [
        health.sentence({ role: 'supervisor', model: model || main }),
        ...specialists,
        ...brokenOf(agents),
        ...problems,
        ...(services.length === 0 ? [] : [t`Services: ${services.join(', ')}.`]),
        t`At most ${maxSteps} of them are asked for one message.`,
      ];
    },
    open: async (turn) => new SupervisorTurn(turn, deps, await deps.agents.roster()),
  };
}

const brokenOf = (agents: AgentRoster['agents']) =>
  agents.flatMap((each) =>
    each.kind === 'broken' ? [t`${each.name} cannot be used: ${each.problem}`] : [],
  );

// Supervisor: it hands tasks to declared specialists and asks services, round by round, until it finishes;
// then the answer is written. Where it does not answer, the main model goes on with its tools.

import type { AgentRoster } from './agent-files.ts';

import type { ModeDeps, ModeKind } from './modes.ts';
import { missing } from './role-health.ts';
import { roleOf } from './specialist.ts';
import { SupervisorTurn } from './supervisor-turn.ts';

export function createSupervisor(deps: ModeDeps): ModeKind {
  const { health, models } = deps;
  const settings = () => deps.settings().supervisor;
  return {
    async problems() {
      const { agents } = await deps.agents.roster();
      const usable = agents.some(({ kind }) => kind === 'valid');
      const none = usable ? [] : ['no specialist can be used', ...brokenOf(agents)];
      return [...missing(models, 'agents.supervisor.model', settings().model, false), ...none];
    },
    async about() {
      const { agents, problems } = await deps.agents.roster();
      const main = models().defaultModel;
      const { model, services, maxSteps } = settings();
      const specialists = agents.flatMap((each) => {
        if (each.kind === 'broken') return [];
        const who = roleOf(each.value, models(), main);
        const unserved = missing(models, `agents/${each.value.name}.yaml: model`, who.model, true);
        return unserved.length === 0 ? [health.sentence(who)] : unserved;
      });
      return [
        health.sentence({ role: 'supervisor', model: model || main }),
        ...specialists,
        ...brokenOf(agents),
        ...problems,
        ...(services.length === 0 ? [] : [`Services: ${services.join(', ')}.`]),
        `At most ${maxSteps} of them are asked for one message.`,
      ];
    },
    open: async (turn) => new SupervisorTurn(turn, deps, await deps.agents.roster()),
  };
}

const brokenOf = (agents: AgentRoster['agents']) =>
  agents.flatMap((each) =>
    each.kind === 'broken' ? [`${each.name} cannot be used: ${each.problem}`] : [],
  );

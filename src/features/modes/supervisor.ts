// Supervisor: it hands tasks to declared specialists and asks services, round by round, until it finishes;
// then the answer is written. Where it does not answer, the main model goes on with its tools.

import type { AgentRoster } from './agent-files.ts';
import type { SupervisorDeps } from './mode-deps.ts';
import type { ModeKind } from './modes.ts';
import { missing } from './role-probes.ts';
import { roleOf } from './supervisor-words.ts';

export function createSupervisor(deps: SupervisorDeps): ModeKind {
  const { health, settings, models } = deps;
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
      const supervisor = { role: 'supervisor', model: settings().model || main } as const;
      const specialists = agents.flatMap((each) => {
        if (each.kind === 'broken') return [];
        const who = roleOf(each.value, models(), main);
        const unserved = missing(models, `agents/${each.value.name}.yaml: model`, who.model, true);
        return unserved.length === 0 ? [health.sentence(who)] : unserved;
      });
      const { services, maxSteps } = settings();
      return [
        health.sentence(supervisor),
        ...specialists,
        ...brokenOf(agents),
        ...problems,
        ...(services.length === 0 ? [] : [`Services: ${services.join(', ')}.`]),
        `At most ${maxSteps} of them are asked for one message.`,
      ];
    },
    async open(turn) {
      const [roster, { openSupervisor }] = await Promise.all([
        deps.agents.roster(),
        import('./supervisor-turn.ts'),
      ]);
      return openSupervisor(turn, deps, roster);
    },
  };
}

const brokenOf = (agents: AgentRoster['agents']) =>
  agents.flatMap((each) =>
    each.kind === 'broken' ? [`${each.name} cannot be used: ${each.problem}`] : [],
  );

// Holds a turn to less than every turn: fewer tools, rounds, tokens, time.

import type { Toolbox } from '../tools/tool.ts';
import type { Confines } from './agent.ts';
import type { TurnLimits } from './rules/turn-state.ts';
import type { AgentSettings } from './settings.ts';

/** A tool outside of them does not exist for the turn. */
export function confinedTools(
  toolbox: Toolbox,
  confines: Pick<Confines, 'mayUse'> | undefined,
): Toolbox {
  if (confines === undefined) return toolbox;
  const mayUse = (name: string) => confines.mayUse(name);
  return {
    ...toolbox,
    offered: (rights, isWanted = () => true) =>
      toolbox.offered(rights, (name) => mayUse(name) && isWanted(name)),
    bind(name, argumentsJson) {
      const bound = toolbox.bind(name, argumentsJson);
      if (mayUse(bound.name)) return bound;
      const text = `Error (unknown tool): you have no tool ${bound.name} here. Use those you were given.`;
      const outcome = { status: 'failed', text, failure: 'unknown_tool' } as const;
      return { kind: 'refused', name: bound.name, outcome };
    },
  };
}

export function limitsOf(settings: AgentSettings, confines: Confines | undefined): TurnLimits {
  const { maxToolIterations, maxTurnTokens, maxTurnMs } = settings;
  const all = { maxRounds: maxToolIterations, maxTokens: maxTurnTokens, maxMs: maxTurnMs };
  if (confines === undefined) return all;
  return {
    maxRounds: Math.min(confines.maxRounds ?? all.maxRounds, all.maxRounds),
    maxTokens: Math.min(confines.maxTokens, all.maxTokens),
    maxMs: confines.maxMs,
  };
}

// Derives the settings of the agent from the configuration.

import type { ProprioceptionConfig } from '../features/steadiness/settings.ts';
import type { Config } from '../kernel/config/config.ts';
import type { Toolbox, ToolOutcome } from '../tools/tool.ts';
import type { ConfinedLimits } from './agent.ts';
import type { CompactionEngine } from './compaction-settings.ts';
import type { TurnLimits } from './rules/turn-state.ts';

export type AgentSettings = ReturnType<typeof agentSettingsOf>;

/** Applies the choice of one session. */
export function withEngine(
  settings: AgentSettings,
  engine: CompactionEngine | undefined,
): AgentSettings {
  if (engine === undefined) return settings;
  return { ...settings, compaction: { ...settings.compaction, engine } };
}

/** `workspace`: an absolute path. */
export function agentSettingsOf(config: Config, workspace: string) {
  const { defaults, antiDrift, proprioception } = config.agents;
  const { maxTokens, temperature, maxToolIterations, maxContextTokens, maxTurnTokens } = defaults;
  const { finalAnswer, claimCheck, clearing } = defaults;
  return {
    ...{ maxTokens, temperature, maxToolIterations, maxContextTokens, maxTurnTokens },
    ...{ finalAnswer, claimCheck, clearing, antiDrift, proprioception, workspace },
    compaction: { ...defaults.compaction, ...audienceIn(proprioception) },
    maxSameCalls: defaults.maxSameToolCallPerTurn,
    maxResultChars: defaults.maxToolResultChars,
    maxTurnMs: defaults.maxTurnSecs * 1000,
    smallTools: config.localModels.smallTools,
    maxInlineChars: config.media.maxInlineChars,
    timeZone: config.sessions.timeZone,
  };
}

const audienceIn = ({ enabled, audienceAwareCompaction }: ProprioceptionConfig) =>
  enabled && audienceAwareCompaction ? ({ forAudience: true } as const) : {};

// Restricts a turn beyond the configuration: fewer tools, rounds, tokens, time.

/** A tool that is not allowed does not exist for the turn. */
export function confinedTools(
  toolbox: Toolbox,
  turnLimits: Pick<ConfinedLimits, 'mayUse'> | undefined,
): Toolbox {
  if (turnLimits === undefined) return toolbox;
  const mayUse = (name: string) => turnLimits.mayUse(name);
  return {
    ...toolbox,
    offered: (rights, isWanted = () => true) =>
      toolbox.offered(rights, (name) => mayUse(name) && isWanted(name)),
    bind(name, argumentsJson) {
      const bound = toolbox.bind(name, argumentsJson);
      if (mayUse(bound.name)) return bound;
      return { kind: 'refused', name: bound.name, outcome: unknownTool(bound.name) };
    },
  };
}

export function unknownTool(tool: string): ToolOutcome {
  const text = `Error (unknown tool): you have no tool ${tool} here. Use those you were given.`;
  return { status: 'failed', text, failure: 'unknown_tool' };
}

export function limitsOf(
  settings: AgentSettings,
  turnLimits: ConfinedLimits | undefined,
): TurnLimits {
  const { maxToolIterations, maxTurnTokens, maxTurnMs } = settings;
  const all = { maxRounds: maxToolIterations, maxTokens: maxTurnTokens, maxMs: maxTurnMs };
  if (turnLimits === undefined) return all;
  return {
    maxRounds: Math.min(turnLimits.maxRounds ?? all.maxRounds, all.maxRounds),
    maxTokens: Math.min(turnLimits.maxTokens, all.maxTokens),
    maxMs: turnLimits.maxMs,
  };
}

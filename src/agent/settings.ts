// What the agent needs of the configuration, in its own units.

import type { AntiDriftConfig, ProprioceptionConfig } from '../features/steadiness/settings.ts';
import type { Config } from '../kernel/config/config.ts';
import type { Toolbox } from '../tools/tool.ts';
import type { Confines } from './agent.ts';
import type { CompactionEngine, CompactionPolicy } from './rules/compaction.ts';
import type { TurnLimits } from './rules/turn-state.ts';

export type AgentSettings = {
  readonly maxTokens: number;
  readonly temperature: number;
  readonly maxToolIterations: number;
  readonly maxContextTokens: number;
  readonly compaction: CompactionPolicy;
  /** Whether the answer is what the model says last, or is written by a call of its own. */
  readonly finalAnswer: 'inline' | 'separate';
  /** Whether an answer that tells of something done is held against what was done. */
  readonly claimCheck: boolean;
  /** Identical calls of a tool that changes something, in one turn. */
  readonly maxSameCalls: number;
  /** Longest result of a tool that the model is shown whole. */
  readonly maxResultChars: number;
  readonly maxTurnTokens: number;
  readonly maxTurnMs: number;
  readonly clearing: Config['agents']['defaults']['clearing'];
  /** Absolute path. */
  readonly workspace: string;
  /** Tools of a small model on a local server; empty: all. */
  readonly smallTools: readonly string[];
  /** Of a document, shown with its message. */
  readonly maxInlineChars: number;
  /** IANA name; empty = the machine's. */
  readonly timeZone: string;
  readonly antiDrift: AntiDriftConfig;
  readonly proprioception: ProprioceptionConfig;
};

/** With what was chosen for one conversation. */
export function withEngine(
  settings: AgentSettings,
  engine: CompactionEngine | undefined,
): AgentSettings {
  if (engine === undefined) return settings;
  return { ...settings, compaction: { ...settings.compaction, engine } };
}

export function agentSettingsOf(config: Config, workspace: string): AgentSettings {
  const { defaults } = config.agents;
  return {
    maxTokens: defaults.maxTokens,
    temperature: defaults.temperature,
    maxToolIterations: defaults.maxToolIterations,
    maxContextTokens: defaults.maxContextTokens,
    compaction: { ...defaults.compaction, ...audienceIn(config.agents.proprioception) },
    finalAnswer: defaults.finalAnswer,
    claimCheck: defaults.claimCheck,
    maxSameCalls: defaults.maxSameToolCallPerTurn,
    maxResultChars: defaults.maxToolResultChars,
    maxTurnTokens: defaults.maxTurnTokens,
    maxTurnMs: defaults.maxTurnSecs * 1000,
    clearing: defaults.clearing,
    workspace,
    smallTools: config.localModels.smallTools,
    maxInlineChars: config.media.maxInlineChars,
    timeZone: config.sessions.timeZone,
    antiDrift: config.agents.antiDrift,
    proprioception: config.agents.proprioception,
  };
}

const audienceIn = ({ enabled, audienceAwareCompaction }: ProprioceptionConfig) =>
  enabled && audienceAwareCompaction ? ({ forAudience: true } as const) : {};

// Holds a turn to less than every turn: fewer tools, rounds, tokens, time.

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

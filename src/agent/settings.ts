// What the agent needs of the configuration, in its own units.

import type { AntiDriftConfig, ProprioceptionConfig } from '../features/steadiness/settings.ts';
import type { Config } from '../kernel/config/config.ts';
import type { CompactionEngine, CompactionPolicy } from './rules/compaction.ts';

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

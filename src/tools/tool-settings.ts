// The part of the configuration that concerns tools.

import type { Config } from '../core/config.ts';

export type ToolboxSettings = {
  /** Names of tools the agent does not get. */
  readonly disabled: readonly string[];
  readonly maxResultChars: number;
  readonly timeoutMs: number;
};

const MEMORY_TOOLS = ['remember', 'recall'];

export function toolboxSettings(
  config: Pick<Config, 'agents' | 'memory' | 'tools'>,
): ToolboxSettings {
  const { disabled, timeoutSecs } = config.tools;
  return {
    disabled: config.memory.enabled ? disabled : [...disabled, ...MEMORY_TOOLS],
    maxResultChars: config.agents.defaults.maxToolResultChars,
    timeoutMs: timeoutSecs * 1000,
  };
}

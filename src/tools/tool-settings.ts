// The part of the configuration that concerns tools.

import type { Config } from '../kernel/config/config.ts';

export type ToolboxSettings = {
  /** Names of tools the agent does not get. */
  readonly disabled: readonly string[];
  readonly maxResultChars: number;
  readonly timeoutMs: number;
};

const MEMORY_TOOLS = ['remember', 'recall'];
const WEB_TOOLS = ['web_fetch', 'web_search'];
const MAIL_TOOLS = ['send_email'];

export function toolboxSettings(
  config: Pick<Config, 'agents' | 'channels' | 'memory' | 'tools'>,
): ToolboxSettings {
  const { disabled, timeoutSecs, web } = config.tools;
  return {
    disabled: [
      ...disabled,
      ...(config.memory.enabled ? [] : MEMORY_TOOLS),
      ...(web.enabled ? [] : WEB_TOOLS),
      ...(config.channels.email.enabled ? [] : MAIL_TOOLS),
    ],
    maxResultChars: config.agents.defaults.maxToolResultChars,
    timeoutMs: timeoutSecs * 1000,
  };
}

// The toolbox in force: built again when the configuration changed what is in it.

import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { MemoryStore } from '../memory/memory.ts';
import { createTools } from '../tools/index.ts';
import type { Toolbox } from '../tools/tool.ts';
import { createToolbox } from '../tools/toolbox.ts';
import type { LoadedConfig } from './config.ts';
import type { LiveConfig } from './live-config.ts';

export type ToolboxesDeps = {
  readonly live: LiveConfig;
  readonly memory: MemoryStore;
  readonly clock: Clock;
  readonly log: Logger;
};

export function createToolboxes({ live, memory, clock, log }: ToolboxesDeps): () => Toolbox {
  let built: { readonly from: LoadedConfig; readonly toolbox: Toolbox } | undefined;

  function build({ config }: LoadedConfig): Toolbox {
    const tools = createTools({
      clock,
      timeZone: config.sessions.timeZone,
      ...(config.memory.enabled ? { memory } : {}),
    });
    return createToolbox({
      tools,
      disabled: config.tools.disabled,
      maxResultChars: config.agents.defaults.maxToolResultChars,
      timeoutMs: config.tools.timeoutSecs * 1000,
      clock,
      log,
    });
  }

  return () => {
    if (built?.from !== live.loaded) built = { from: live.loaded, toolbox: build(live.loaded) };
    return built.toolbox;
  };
}

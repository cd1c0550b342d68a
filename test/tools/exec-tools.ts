// The tools that run programs, called as the agent calls them.

import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { createExec, createExecuteCode } from '../../src/tools/exec/exec.ts';
import type { Executor } from '../../src/tools/exec/executor.ts';
import type { Tool, ToolContext } from '../../src/tools/tool.ts';
import { createToolbox } from '../../src/tools/toolbox.ts';

export function execTools(executor: Executor, context: ToolContext) {
  const tools = [createExec(executor), createExecuteCode(executor)] as readonly Tool[];
  const toolbox = createToolbox({
    tools: () => tools,
    settings: () => ({ disabled: [], maxResultChars: 20_000, timeoutMs: 60_000 }),
    clock: systemClock,
    log: silentLogger,
  });
  const base = { ...context, clock: systemClock };
  async function call(name: string, input: object, changed: Partial<ToolContext> = {}) {
    const bound = toolbox.bind(name, JSON.stringify(input));
    return bound.kind === 'refused' ? bound.outcome : bound.run({ ...base, ...changed });
  }
  const seal = async (input: object) => {
    const bound = toolbox.bind('exec', JSON.stringify(input));
    return bound.kind === 'ready' ? bound.seal(base) : undefined;
  };
  return { toolbox, call, seal };
}

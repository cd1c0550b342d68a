// What the modes in which several models share a turn need of one another.

import type { Config } from '../../../kernel/config/config.ts';
import type { ConfigProblem } from '../../../kernel/message/errors.ts';

export function modeConflicts({ agents }: Config): readonly ConfigProblem[] {
  const { mode, trio } = agents;
  if (mode !== 'trio' || trio.router.model !== '') return [];
  const problem = 'a trio needs a router';
  const remedy = 'Name a model, e.g. ollama/qwen3:1.7b, or set agents.mode to "inline".';
  return [{ path: 'agents.trio.router.model', problem, remedy }];
}

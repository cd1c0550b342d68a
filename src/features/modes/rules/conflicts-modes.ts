// What the modes in which several models share a turn need of one another.

import type { Config } from '../../../kernel/config/config.ts';
import { type Problems, unless } from '../../../kernel/config/problems.ts';

export const modeConflicts = ({ agents: { mode, trio } }: Config): Problems =>
  unless(
    mode !== 'trio' || trio.router.model !== '',
    'agents.trio.router.model',
    'a trio needs a router',
    'Name a model, e.g. ollama/qwen3:1.7b, or set agents.mode to "inline".',
  );

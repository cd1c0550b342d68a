// The declared specialists of a home: those that come with the program, and the home's own.

import { type AgentFiles, createAgentFiles } from '../agent/modes/agent-files.ts';
import { createGuardedFiles } from '../lib/guarded-files.ts';
import type { Home } from './home.ts';
import { SHIPPED_AGENTS } from './package-files.ts';

export const openAgentFiles = ({ agents }: Pick<Home, 'agents'>): AgentFiles =>
  createAgentFiles(createGuardedFiles(), [SHIPPED_AGENTS, agents]);

// `/skills`: what the agent knows how to do well, and why one of them is not in use.

import type { Command } from '../../kernel/commands/command.ts';
import type { Skill } from './skills.ts';

export const SKILLS_COMMANDS: readonly Command[] = [
  {
    name: 'skills',
    summary: 'list what I have instructions for',
    timing: 'immediate',
    async run(_origin, _argument, { skills }) {
      const lines = (await skills.list()).map(lineOf);
      if (lines.length === 0) return 'There are no skills. Add one with `nanobot skills add`.';
      return `Skills:\n${lines.join('\n')}`;
    },
  },
];

function lineOf({ name, description, isAlways, state }: Skill): string {
  switch (state.kind) {
    case 'ready':
      return `- **${name}**${isAlways ? ' (always in use)' : ''}: ${description}`;
    case 'lacking':
      return `- **${name}** (missing: ${state.missing.join(', ')}): ${description}`;
    case 'changed':
      return `- **${name}** (not in use: it changed since it was added)`;
    case 'broken':
      return `- **${name}** (not in use: ${state.problem})`;
  }
}

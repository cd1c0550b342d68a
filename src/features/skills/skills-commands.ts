// `/skills`: what the agent knows how to do well, and why one of them is not in use.

import { type Command, type CommandTable, commandsOf } from '../../kernel/commands/command.ts';
import type { Skill, Skills } from './skills.ts';

export const SKILLS_COMMANDS = {
  skills: {
    summary: 'list what I have instructions for',
    access: { direct: 'trusted', group: 'owner' },
    timing: 'immediate',
  },
} satisfies CommandTable;

export function skillsCommands(skills: Pick<Skills, 'list'>): readonly Command[] {
  return commandsOf(SKILLS_COMMANDS, {
    async skills() {
      const lines = (await skills.list()).map(lineOf);
      if (lines.length === 0) return 'There are no skills. Add one with `nanobot skills add`.';
      return `Skills:\n${lines.join('\n')}`;
    },
  });
}

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

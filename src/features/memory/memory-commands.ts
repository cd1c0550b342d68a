// `/memory`, `/forget` and `/export`: what is kept about a person, shown, erased and exported.

import { CONVERSATION, PERSONAL } from '../../kernel/access/command-access.ts';
import { type Command, type CommandTable, commandsOf } from '../../kernel/commands/command.ts';
import type { MemoryDesk } from './memory-desk.ts';
import type { ReflectionDesk } from './reflection-desk.ts';

export const MEMORY_COMMANDS = {
  memory: {
    summary: 'what I remember of you, or have me think it over',
    usage: '/memory [reflect]',
    access: CONVERSATION,
    timing: 'in_order',
  },
  forget: {
    summary: 'take something out of all that I keep of you, for good',
    usage: '/forget <words>',
    access: { direct: 'guest', group: 'owner', audited: true },
    timing: 'in_order',
  },
  export: {
    summary: 'send you all that I keep of you',
    usage: '/export [md | jsonl]',
    access: PERSONAL,
    timing: 'in_order',
  },
} satisfies CommandTable;

export function memoryCommands(
  memory: Pick<MemoryDesk, 'show' | 'forget' | 'handOut'>,
  reflection: Pick<ReflectionDesk, 'reflect'>,
): readonly Command[] {
  return commandsOf(MEMORY_COMMANDS, {
    async memory({ message, role }, argument) {
      if (argument.trim().toLowerCase() !== 'reflect') return memory.show(message);
      const mayReflect = role === 'owner' || (role === 'trusted' && message.group === undefined);
      return mayReflect ? reflection.reflect(message) : 'Only my owner can do that.';
    },
    forget: ({ message }, argument) => memory.forget(message, argument),
    export: ({ message }, argument) =>
      memory.handOut(message, argument.trim().toLowerCase() === 'jsonl' ? 'jsonl' : 'md'),
  });
}

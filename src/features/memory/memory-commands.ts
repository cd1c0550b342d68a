// `/memory`, `/forget` and `/export`: what is kept of whoever asks, seen, taken back and taken along.

import type { Command } from '../../kernel/commands/command.ts';

export const MEMORY_COMMANDS: readonly Command[] = [
  {
    name: 'memory',
    summary: 'what I remember of you, or have me think it over',
    usage: '/memory [reflect]',
    timing: 'in_order',
    async run({ message, role }, argument, { memory }) {
      if (argument.trim().toLowerCase() !== 'reflect') return memory.show(message);
      const mayReflect = role === 'owner' || (role === 'trusted' && message.group === undefined);
      return mayReflect ? memory.reflect(message) : 'Only my owner can do that.';
    },
  },
  {
    name: 'forget',
    summary: 'take something out of all that I keep of you, for good',
    usage: '/forget <words>',
    timing: 'in_order',
    run: ({ message }, argument, { memory }) => memory.forget(message, argument),
  },
  {
    name: 'export',
    summary: 'send you all that I keep of you',
    usage: '/export [md | jsonl]',
    timing: 'in_order',
    run: ({ message }, argument, { memory }) =>
      memory.handOut(message, argument.trim().toLowerCase() === 'jsonl' ? 'jsonl' : 'md'),
  },
];

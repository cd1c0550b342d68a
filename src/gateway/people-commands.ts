// The `/commands` about people: who one is to the agent.

import { idsOf } from '../core/message.ts';
import type { Command, CommandOrigin } from './command.ts';

export const PEOPLE_COMMANDS: readonly Command[] = [
  {
    name: 'whoami',
    summary: 'show who you are to me',
    timing: 'immediate',
    run: async (origin) => whoAmI(origin),
  },
];

function whoAmI({ message: { sender, chat }, role }: CommandOrigin): string {
  const ids = sender.kind === 'person' ? idsOf(sender) : [sender.source];
  return [
    `- You: ${ids.map((id) => `\`${id}\``).join(', ')}`,
    `- Role: ${role ?? 'let in for one message'}`,
    `- Channel: ${chat.channel}`,
  ].join('\n');
}

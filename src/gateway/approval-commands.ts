// The `/command` about calls that wait for an owner's yes.

import { verbatim } from '../core/stranger-words.ts';
import type { Command, CommandDeps, CommandOrigin } from './command.ts';

export const APPROVAL_COMMANDS: readonly Command[] = [
  {
    name: 'approvals',
    summary: 'list what waits for your yes, and ask it again here',
    timing: 'immediate',
    run: showApprovals,
  },
];

async function showApprovals(
  { message: { chat } }: CommandOrigin,
  _argument: string,
  { approvals, mediumOf }: CommandDeps,
): Promise<string> {
  const open = await approvals.open();
  if (open.length === 0) return 'Nothing waits for your yes.';
  const lines = open.map(({ tool, asker }) => `- ${verbatim(tool)}, asked by ${asker}`);
  if (mediumOf(chat.channel) === 'mail') {
    return [...lines, 'Decide in a chat: a mail may hold words of others.'].join('\n');
  }
  await approvals.askAgain(chat);
  return [...lines, 'I ask each of them again here.'].join('\n');
}

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
  { approvals, drafts, mediumOf }: CommandDeps,
): Promise<string> {
  const calls = await approvals.open();
  const letters = await drafts.open();
  const lines = [
    ...calls.map(({ tool, asker }) => `- ${verbatim(tool)}, asked by ${asker}`),
    ...letters.map(({ name, turn }) => `- a draft for ${verbatim(name)}, asked by ${turn.asker}`),
  ];
  if (lines.length === 0) return 'Nothing waits for your yes.';
  if (mediumOf(chat.channel) === 'mail') {
    return [...lines, 'Decide in a chat: a mail may hold words of others.'].join('\n');
  }
  await approvals.askAgain(chat);
  await drafts.askAgain(chat);
  return [...lines, 'I ask each of them again here.'].join('\n');
}

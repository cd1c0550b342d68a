// /status: what is going on, from the conversation's own settings to what every part says of itself.

import { spentToday } from '../../features/spending/spending-commands.ts';
import type { Command, CommandDeps, CommandOrigin } from './command.ts';

export const STATUS_COMMAND: Command = {
  name: 'status',
  summary: 'show what is going on',
  timing: 'immediate',
  run: showStatus,
};

async function showStatus(origin: CommandOrigin, _argument: string, deps: CommandDeps) {
  const { session } = origin;
  const chosen = await deps.settings.get(session);
  const stats = await deps.bus.stats();
  const thinking = chosen.thinkingBudget ?? deps.defaults().thinkingBudget;
  const lines = await Promise.all(deps.status().map((linesOf) => linesOf(session)));
  return [
    `- Model: ${chosen.model ?? deps.models().defaultModel}`,
    `- Thinking: ${thinking === 0 ? 'off' : `${thinking} tokens`}`,
    `- Messages during an answer: ${chosen.queueMode ?? deps.defaults().queueMode}`,
    `- Today: ${await spentToday(origin, deps)}`,
    `- Conversation: ${session}`,
    `- Waiting: ${stats.pending} in, ${stats.outboundQueued} out; running: ${stats.running}`,
    ...(stats.dead + stats.unknown === 0
      ? []
      : [`- Set aside: ${stats.dead + stats.unknown} (see \`nanobot dead list\`)`]),
    ...lines.flat().map((line) => `- ${line}`),
  ].join('\n');
}

// /status: the state of the conversation, and what every feature reports about itself.

import type { ModelRegistry } from '../../providers/provider.ts';
import type { MessageBus } from '../bus/bus.ts';
import type { LiveConfig } from '../config/files/live-config.ts';
import { problemLines } from '../config/issues.ts';
import type { Contributed } from '../contributions.ts';
import { verbatim } from '../message/untrusted.ts';
import type { SessionSettingsStore } from '../turns/session-settings.ts';
import { type Command, type CommandOrigin, type CommandTable, commandsOf } from './command.ts';
import type { TurnDefaults } from './model-commands.ts';

export const STATUS_COMMANDS = {
  status: {
    summary: 'show what is going on',
    access: { direct: 'trusted', group: 'trusted' },
    timing: 'immediate',
  },
} satisfies CommandTable;

export type StatusCommandDeps = {
  readonly contributed: Pick<Contributed, 'status'>;
  readonly bus: Pick<MessageBus, 'stats'>;
  readonly settings: SessionSettingsStore;
  models(): ModelRegistry;
  turnDefaults(): TurnDefaults;
  /** As far as the person may see it. */
  spentToday(origin: CommandOrigin): Promise<string>;
};

export function statusCommands(deps: StatusCommandDeps): readonly Command[] {
  return commandsOf(STATUS_COMMANDS, { status: (origin) => showStatus(origin, deps) });
}

/** While the configuration file is wrong. */
export function configurationLines(live: LiveConfig): readonly string[] {
  const { problems } = live;
  if (problems.length === 0) return [];
  const words = problemLines(problems).map((line) => verbatim(live.redact(line)));
  const what = 'config.json cannot be used, the configuration before it stays in force';
  return [`Configuration: ${what}: ${words.join(', ')}`];
}

async function showStatus(origin: CommandOrigin, deps: StatusCommandDeps): Promise<string> {
  const { session } = origin;
  const chosen = await deps.settings.get(session);
  const stats = await deps.bus.stats();
  const thinking = chosen.thinkingBudget ?? deps.turnDefaults().thinkingBudget;
  const lines = await Promise.all(deps.contributed.status().map((linesOf) => linesOf(session)));
  return [
    `- Model: ${chosen.model ?? deps.models().defaultModel}`,
    `- Thinking: ${thinking === 0 ? 'off' : `${thinking} tokens`}`,
    `- Messages during an answer: ${chosen.queueMode ?? deps.turnDefaults().queueMode}`,
    `- Today: ${await deps.spentToday(origin)}`,
    `- Conversation: ${session}`,
    `- Waiting: ${stats.pending} in, ${stats.outboundQueued} out; running: ${stats.running}`,
    ...(stats.dead + stats.unknown === 0
      ? []
      : [`- Set aside: ${stats.dead + stats.unknown} (see \`nanobot dead list\`)`]),
    ...lines.flat().map((line) => `- ${line}`),
  ].join('\n');
}

// /mode: how a conversation's turns share their work among models. What is chosen holds for this
// conversation, from its next message on.

import { COSTS } from '../../kernel/access/command-access.ts';
import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command.ts';
import type { SessionSettingsStore } from '../../kernel/turns/session-settings.ts';
import type { ModeDesk } from './modes.ts';
import { AGENT_MODES, type AgentMode } from './rules/mode.ts';

export const MODE_COMMANDS = {
  mode: {
    summary: 'show or change how models share the work',
    usage: `/mode [${AGENT_MODES.join(' | ')} | default]`,
    access: COSTS,
    timing: 'in_order',
  },
} satisfies CommandTable;

export function modeCommands(modes: ModeDesk, settings: SessionSettingsStore): readonly Command[] {
  return commandsOf(MODE_COMMANDS, {
    mode: (origin, argument) => changeMode(origin, argument, modes, settings),
  });
}

async function changeMode(
  { session }: CommandOrigin,
  argument: string,
  modes: ModeDesk,
  settings: SessionSettingsStore,
): Promise<string> {
  const chosen = await settings.get(session);
  const wanted = argument.toLowerCase();
  if (wanted === '') return described(chosen.mode ?? modes.configured(), modes, 'The mode is');
  if (wanted === 'default') {
    const { mode: _dropped, ...rest } = chosen;
    await settings.set(session, rest);
    return described(modes.configured(), modes, 'Again as configured, the mode is');
  }
  const mode = AGENT_MODES.find((each) => each === wanted);
  if (mode === undefined) return `There are these modes: ${AGENT_MODES.join(', ')}.`;
  await settings.set(session, { ...chosen, mode });
  return described(mode, modes, 'From the next message on the mode is');
}

async function described(mode: AgentMode, modes: ModeDesk, head: string): Promise<string> {
  const problems = await modes.problems(mode);
  const lines = problems.length === 0 ? await modes.about(mode) : problems;
  const cannot = problems.length === 0 ? '' : ' It cannot work yet, so I answer inline:';
  return [`${head} ${mode}.${cannot}`, ...lines.map((line) => `- ${line}`)].join('\n');
}

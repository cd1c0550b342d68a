// `/agents`, the subagents of this conversation, and `/kill`, which ends one. An owner in a private chat sees
// and ends those of all.

import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import type { HelperDesk, HelpersOf } from './helpers.ts';

const MAX_LINES = 30;

export const AGENTS_COMMANDS = {
  agents: {
    summary: 'the helpers at work for you',
    access: { direct: 'trusted', group: 'trusted' },
    timing: 'immediate',
  },
  kill: {
    summary: 'end a helper',
    usage: '/kill <id>',
    access: { direct: 'trusted', group: 'trusted', audited: true },
    timing: 'immediate',
  },
} satisfies CommandTable;

export function agentsCommands(helpers: HelperDesk): readonly Command[] {
  return commandsOf(AGENTS_COMMANDS, {
    async agents(origin) {
      const lines = await helpers.lines(seenBy(origin));
      if (lines.length === 0) return 'There are no helpers.';
      const shown = lines.slice(0, MAX_LINES).map((line) => `- ${line}`);
      return [...shown, 'End one with /kill and its id.'].join('\n');
    },
    async kill(origin, argument) {
      if (argument === '') return 'Say /kill with the id of a helper; /agents shows them.';
      return helpers.kill(argument, seenBy(origin));
    },
  });
}

/** For the status; nothing where there are none. */
export async function helpersAtWork(
  session: SessionKey,
  helpers: HelperDesk,
): Promise<readonly string[]> {
  const running = await helpers.running(session);
  return running === 0 ? [] : [`Helpers at work: ${running} (see /agents)`];
}

function seenBy({ session, message, role }: CommandOrigin): HelpersOf {
  const isAlone = message.addressing === 'direct' && message.group === undefined;
  return role === 'owner' && isAlone ? 'all' : session;
}

// `/workflow`: starts workflows of the workspace and shows their progress. Everybody has their own runs; an owner
// in a private chat sees and ends those of all.

import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import { headOf } from '../../lib/text/cut.ts';
import type { WorkflowAsker, WorkflowDesk } from './workflow-people.ts';

const HINT =
  'Say /workflow list, /workflow run <name> key=value, /workflow runs, or /workflow show | cancel with ' +
  'the id of a run; show with the name of a workflow tells what it does.';
const OFF = 'Workflows are switched off (agents.workflows.enabled).';
/** Of a state that is shown in a chat; the command line shows all of it. */
const MAX_SHOWN_CHARS = 6000;

export const WORKFLOW_COMMANDS = {
  workflow: {
    summary: 'run workflows and see how far they are',
    usage: '/workflow [list | run <name> key=value | runs | show <name or id> | cancel <id>]',
    access: { direct: 'trusted', group: 'nobody', audited: true },
    timing: 'immediate',
    isRepeatable: true,
  },
} satisfies CommandTable;

export function workflowCommands(workflows: WorkflowDesk): readonly Command[] {
  return commandsOf(WORKFLOW_COMMANDS, {
    workflow: async (origin, argument) =>
      workflows.isEnabled() ? workflow(origin, argument, workflows) : OFF,
  });
}

async function workflow(origin: CommandOrigin, argument: string, desk: WorkflowDesk) {
  const [word = '', ...rest] = argument.trim().split(/\s+/);
  const typed = argument.trim().slice(word.length).trim();
  const asker = askerOf(origin);
  if (word === '' || word === 'list') {
    return listed(await desk.list(), 'There are no workflows in the workspace.');
  }
  if (word === 'runs') return listed(await desk.runs(asker), 'There are no runs.');
  if (rest.length === 0) return HINT;
  if (word === 'run') return desk.start(typed, asker);
  if (word === 'cancel') return desk.cancel(typed, asker);
  return word === 'show' ? shown(await desk.show(typed, asker)) : HINT;
}

function listed(lines: readonly string[], none: string): string {
  return lines.length === 0 ? `${none} ${HINT}` : lines.map((line) => `- ${line}`).join('\n');
}

function shown(text: string): string {
  const cut = headOf(text, MAX_SHOWN_CHARS);
  const rest = cut.length < text.length ? '\n[cut here; `nanobot workflows show` shows all]' : '';
  return text.startsWith('{')
    ? `\`\`\`json\n${cut.replaceAll('```', "'''")}${rest}\n\`\`\``
    : cut + rest;
}

/** For the status; nothing where there are none. */
export async function workflowsAtWork(
  session: SessionKey,
  desk: Pick<WorkflowDesk, 'atWork'>,
): Promise<readonly string[]> {
  const { length } = await desk.atWork(session);
  return length === 0 ? [] : [`Workflows at work: ${length} (see /workflow runs)`];
}

function askerOf({ session, message, role }: CommandOrigin): WorkflowAsker {
  const isAlone = message.addressing === 'direct' && message.group === undefined;
  return { session, message, isOwnerAlone: role === 'owner' && isAlone };
}

// The command `/workflow`: starts workflows of the workspace and shows their progress. Everybody
// sees their own runs; an owner in a private chat sees and ends all.

import type { Command, CommandOrigin } from '../../kernel/commands/command-access.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import { type Commission, commissionOf } from '../subagents/index.ts';
import { namedAs } from './rules/definition.ts';
import type { WorkflowAsker, WorkflowService } from './workflow-people.ts';

const HINT =
  t`Usage: /workflow list, /workflow run <name> key=value, /workflow runs, or /workflow show | cancel ` +
  t`<id of a run>; /workflow show <name> tells what a workflow does.`;
/** Limit of a state shown in a chat; the command line shows all of it. */
const MAX_SHOWN_CHARS = 6000;

/** The rights of the sender of a message in its chat, and who they are. */
type StandingOf = (
  message: InboundMessage,
) => Promise<Pick<Commission, 'rights' | 'isTainted' | 'person'>>;

export function workflowCommand(service: WorkflowService, standingOf: StandingOf): Command['run'] {
  return async (origin, argument) => workflow(await askerOf(origin, standingOf), argument, service);
}

async function workflow(asker: WorkflowAsker, argument: string, service: WorkflowService) {
  const [word = '', ...rest] = argument.trim().split(/\s+/);
  const typed = argument.trim().slice(word.length).trim();
  if (word === '' || word === 'list') {
    return listed(await service.list(), t`There are no workflows in the workspace.`);
  }
  if (word === 'runs') return listed(await service.runs(asker), t`There are no runs.`);
  if (rest.length === 0) return HINT;
  if (word === 'run') {
    const { id, line } = await service.start(namedAs(typed), asker);
    return t`Started: ${line}. I tell you here when it has ended; /workflow show ${id} shows its progress.`;
  }
  if (word === 'cancel') return service.cancel(typed, asker);
  return word === 'show' ? shown((await service.show(typed, asker)).text) : HINT;
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

async function askerOf(
  { session, message, role }: CommandOrigin,
  standingOf: StandingOf,
): Promise<WorkflowAsker> {
  const { chat, id: key } = message;
  const isAlone = message.addressing === 'direct' && message.group === undefined;
  const standing = await standingOf(message);
  const home = { kind: 'chat', session, chat } as const;
  return {
    ...{ session, key, notes: role === 'owner' && isAlone ? undefined : standing.person.notes },
    starter: () => ({ home, ...commissionOf(standing, message) }),
  };
}

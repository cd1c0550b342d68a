// The table of `/commands`. An immediate one is answered at once, even while a turn runs; the
// others take their place in the session's order.

import { APPROVAL_COMMANDS } from '../../features/approvals/approval-commands.ts';
import { CLUSTER_COMMANDS } from '../../features/cluster/cluster-commands.ts';
import { LOCAL_COMMANDS } from '../../features/local-models/local-commands.ts';
import { MEMORY_COMMANDS } from '../../features/memory/memory-commands.ts';
import { MODE_COMMANDS } from '../../features/modes/mode-command.ts';
import { KNOWN_PEOPLE_COMMANDS } from '../../features/people/known-people-commands.ts';
import { LINK_COMMANDS } from '../../features/people/link-commands.ts';
import { PEOPLE_COMMANDS } from '../../features/people/people-commands.ts';
import { PERSON_COMMANDS } from '../../features/people/person-commands.ts';
import { CRON_COMMANDS } from '../../features/schedule/cron-commands.ts';
import { SKILLS_COMMANDS } from '../../features/skills/skills-commands.ts';
import { SPENDING_COMMANDS } from '../../features/spending/spending-commands.ts';
import { AGENTS_COMMANDS } from '../../features/subagents/agents-commands.ts';
import { WORKFLOW_COMMANDS } from '../../features/workflows/workflow-commands.ts';
import { headOf } from '../../lib/text/cut.ts';
import { type ParsedCommand, parseCommand } from '../access/command.ts';
import { accountedFor, type CommandVerdict, mayGive } from '../access/command-access.ts';
import { NanobotError } from '../message/errors.ts';
import { type InboundMessage, sessionOf } from '../message/message.ts';
import type { Command, CommandDeps, CommandOrigin } from './command.ts';
import { COMPACT_COMMANDS, CONTINUE_COMMANDS } from './compact-command.ts';
import { CONVERSATION_COMMANDS } from './conversation-commands.ts';
import { didYouMean, helpText, meantBy } from './help-text.ts';
import { MODEL_COMMANDS } from './model-commands.ts';
import { STATUS_COMMAND } from './status-command.ts';
import { STOP_COMMAND } from './stop-command.ts';
import { WHY_COMMANDS } from './why-command.ts';

/** Of a command, in the audit file. */
const MAX_NOTED_CHARS = 200;

export const WELCOME =
  'Hello! Write to me as you would to a person. I answer questions, read pictures and documents that ' +
  'you send, look things up on the web, remember what you ask me to, and remind you.\n\n' +
  'For example: “Remind me at 18:00 to call Ada.” or “What does this document say?”\n\n' +
  '/new begins a new conversation, /stop ends an answer, /help lists all commands.';

export const COMMANDS: readonly Command[] = [
  {
    name: 'start',
    summary: 'say hello',
    timing: 'immediate',
    run: async () => WELCOME,
  },
  {
    name: 'help',
    summary: 'list the commands',
    usage: '/help [command]',
    timing: 'immediate',
    run: async (origin, argument) => helpText(givenBy(origin), argument),
  },
  {
    name: 'new',
    summary: 'begin a new conversation',
    timing: 'in_order',
    async run({ session, message }, _argument, deps) {
      await deps.resetSession(session, message);
      return 'New conversation. The old one is saved; /restore brings it back.';
    },
  },
  {
    name: 'undo',
    summary: 'take the last answer back',
    timing: 'in_order',
    run: (origin, _argument, deps) => deps.undo(origin),
  },
  STOP_COMMAND,
  STATUS_COMMAND,
  ...MODEL_COMMANDS,
  ...LOCAL_COMMANDS,
  ...CLUSTER_COMMANDS,
  ...MODE_COMMANDS,
  ...COMPACT_COMMANDS,
  ...CONVERSATION_COMMANDS,
  ...PEOPLE_COMMANDS,
  ...SPENDING_COMMANDS,
  ...WHY_COMMANDS,
  ...SKILLS_COMMANDS,
  ...PERSON_COMMANDS,
  ...KNOWN_PEOPLE_COMMANDS,
  ...LINK_COMMANDS,
  ...APPROVAL_COMMANDS,
  ...CONTINUE_COMMANDS,
  ...CRON_COMMANDS,
  ...MEMORY_COMMANDS,
  ...AGENTS_COMMANDS,
  ...WORKFLOW_COMMANDS,
];

/** A mistyped name is answered as `/help` is; what is close to none is a message, maybe a path. */
export function findCommand(parsed: ParsedCommand | undefined): Command | undefined {
  if (parsed === undefined) return undefined;
  const { name } = parsed;
  const found = COMMANDS.find((command) => command.name === name);
  if (found !== undefined || meantBy(name, COMMANDS) === undefined) return found;
  const run: Command['run'] = async (origin) => didYouMean(name, givenBy(origin));
  return { name: 'help', summary: '', timing: 'immediate', run };
}

type Giver = Omit<CommandOrigin, 'session'>;

/** The command's answer; where it failed in a way people can understand, that in words. */
export async function runCommand(
  command: Command,
  { message, role }: Giver,
  deps: CommandDeps,
): Promise<string> {
  const verdict = mayGive(command.name, whoGives({ message, role }));
  if (verdict !== 'yes') return REFUSALS[verdict];
  const origin = { session: sessionOf(message), message, role };
  const argument = parseCommand(message.text)?.argument ?? '';
  if (argument !== '') note(command.name, message, deps);
  try {
    return await command.run(origin, argument, deps);
  } catch (error) {
    if (error instanceof NanobotError && error.userText !== undefined) return error.userText;
    throw error;
  }
}

function note(name: string, message: InboundMessage, { audit }: CommandDeps): void {
  const { sender, text } = message;
  const extent = accountedFor(name);
  if (extent === 'not') return;
  const by = sender.kind === 'person' ? sender.id : sender.source;
  const given = extent === 'whole' ? headOf(text, MAX_NOTED_CHARS) : `/${name}`;
  audit.note({ kind: 'command', fields: { command: given, by, session: sessionOf(message) } });
}

const REFUSALS: Readonly<Record<Exclude<CommandVerdict, 'yes'>, string>> = {
  'not this role': 'Only my owner can do that.',
  'not here': 'I do that only between the two of us.',
  'not verified': 'I cannot tell who sent this, so I do not do that.',
};

/** Whoever was let in for one message is a guest, and so is our own machinery. */
function whoGives({ message, role }: Giver): Parameters<typeof mayGive>[1] {
  const { sender, addressing, group } = message;
  return {
    role: role ?? 'guest',
    place: addressing === 'direct' && group === undefined ? 'direct' : 'group',
    verified: sender.kind === 'person' ? sender.verified : 'verified',
  };
}

/** What whoever asks may give here. */
function givenBy(giver: Giver): readonly Command[] {
  return COMMANDS.filter(({ name }) => mayGive(name, whoGives(giver)) === 'yes');
}

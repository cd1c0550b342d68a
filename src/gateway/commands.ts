// The table of `/commands`. An immediate one is answered at once, even while a turn runs; the
// others take their place in the session's order.

import { type ParsedCommand, parseCommand } from '../core/command.ts';
import { accountedFor, type CommandVerdict, mayGive } from '../core/command-access.ts';
import { NanobotError } from '../core/errors.ts';
import { type InboundMessage, sessionOf } from '../core/message.ts';
import { AGENTS_COMMANDS, helpersAtWork } from './agents-commands.ts';
import { APPROVAL_COMMANDS } from './approval-commands.ts';
import type { Command, CommandDeps, CommandOrigin } from './command.ts';
import { COMPACT_COMMANDS } from './compact-command.ts';
import { CONTINUE_COMMANDS } from './continue-command.ts';
import { CONVERSATION_COMMANDS } from './conversation-commands.ts';
import { CRON_COMMANDS } from './cron-commands.ts';
import { didYouMean, helpText, meantBy } from './help-text.ts';
import { KNOWN_PEOPLE_COMMANDS } from './known-people-commands.ts';
import { LINK_COMMANDS } from './link-commands.ts';
import { MEMORY_COMMANDS } from './memory-commands.ts';
import { PEOPLE_COMMANDS } from './people-commands.ts';
import { PERSON_COMMANDS } from './person-commands.ts';
import type { SessionSettings } from './session-settings.ts';
import { SKILLS_COMMANDS } from './skills-commands.ts';
import { SPENDING_COMMANDS, spentToday } from './spending-commands.ts';
import { WHY_COMMANDS } from './why-command.ts';

const THINK_ON_TOKENS = 10_000;
const THINK_MIN_TOKENS = 1024;
const THINK_MAX_TOKENS = 128_000;
/** Of a command, in the audit file. */
const MAX_NOTED_CHARS = 200;

const WELCOME =
  'Hello! Write to me as you would to a person. I can read and write files in my workspace, ' +
  'remember things and tell the time.';

export const COMMANDS: readonly Command[] = [
  {
    name: 'start',
    summary: 'say hello',
    timing: 'immediate',
    run: async (origin) => `${WELCOME}\n\n${helpText(givenBy(origin), '')}`,
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
    async run({ session }, _argument, deps) {
      await deps.resetSession(session);
      return (
        'A new conversation begins. What was said before stays on disk: I see it only where I look ' +
        'through past conversations for you. /restore brings it back, /forget removes what you name.'
      );
    },
  },
  {
    name: 'undo',
    summary: 'take the last answer back',
    timing: 'in_order',
    run: (origin, _argument, deps) => deps.undo(origin),
  },
  {
    name: 'stop',
    summary: 'stop the answer and drop what waits',
    timing: 'immediate',
    async run({ session }, _argument, deps) {
      const { running, withdrawn } = await deps.bus.cancel(session, 'stopped by /stop');
      const helpers = await deps.helpers.stopAll(session);
      if (!running && withdrawn + helpers === 0) return 'Nothing is running.';
      const dropped = withdrawn === 0 ? '' : ` ${countOf(withdrawn, 'waiting message')} dropped.`;
      const ended = helpers === 0 ? '' : ` ${countOf(helpers, 'helper')} ended with it.`;
      return `Stopped.${dropped}${ended}`;
    },
  },
  { name: 'status', summary: 'show what is going on', timing: 'immediate', run: showStatus },
  {
    name: 'model',
    summary: 'show or change the model',
    usage: '/model [name | default]',
    timing: 'in_order',
    run: changeModel,
  },
  {
    name: 'think',
    summary: 'show or change how much the model thinks',
    usage: '/think [on | off | tokens]',
    timing: 'in_order',
    run: changeThinking,
  },
  {
    name: 'queue',
    summary: 'what messages sent during an answer do',
    usage: '/queue [steer | followup]',
    timing: 'in_order',
    run: changeQueue,
  },
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
  const given = extent === 'whole' ? text.slice(0, MAX_NOTED_CHARS).toWellFormed() : `/${name}`;
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

async function showStatus(origin: CommandOrigin, _argument: string, deps: CommandDeps) {
  const { session } = origin;
  const chosen = await deps.settings.get(session);
  const stats = await deps.bus.stats();
  const thinking = chosen.thinkingBudget ?? deps.defaults().thinkingBudget;
  return [
    `- Model: ${chosen.model ?? deps.models().defaultModel}`,
    `- Thinking: ${thinking === 0 ? 'off' : `${thinking} tokens`}`,
    `- Messages during an answer: ${chosen.queueMode ?? deps.defaults().queueMode}`,
    `- Today: ${await spentToday(origin, deps)}`,
    `- Conversation: ${session}`,
    ...(await helpersAtWork(session, deps)),
    `- Waiting: ${stats.pending} in, ${stats.outboundQueued} out; running: ${stats.running}`,
    ...(stats.dead + stats.unknown === 0
      ? []
      : [`- Set aside: ${stats.dead + stats.unknown} (see \`nanobot dead list\`)`]),
    ...deps.channelLines().map((line) => `- ${line}`),
  ].join('\n');
}

async function changeModel({ session }: CommandOrigin, argument: string, deps: CommandDeps) {
  const chosen = await deps.settings.get(session);
  const current = chosen.model ?? deps.models().defaultModel;
  if (argument === '') return `The model is ${current}. Change it with /model <name>.`;
  if (argument === 'default') {
    const { model: _dropped, ...rest } = chosen;
    await deps.settings.set(session, rest);
    return `The model is ${deps.models().defaultModel} again.`;
  }
  const handle = deps.models().resolve(argument);
  await deps.settings.set(session, { ...chosen, model: argument });
  return `From the next message on the model is ${handle.name}.`;
}

async function changeThinking({ session }: CommandOrigin, argument: string, deps: CommandDeps) {
  const chosen = await deps.settings.get(session);
  if (argument === '') {
    const budget = chosen.thinkingBudget ?? deps.defaults().thinkingBudget;
    return budget === 0 ? 'Thinking is off.' : `Thinking is on, up to ${budget} tokens.`;
  }
  const budget = thinkingBudgetOf(argument);
  if (budget === undefined) return 'Say /think on, /think off or /think with a number of tokens.';
  await deps.settings.set(session, { ...chosen, thinkingBudget: budget });
  return budget === 0 ? 'Thinking is off.' : `Thinking is on, up to ${budget} tokens.`;
}

function thinkingBudgetOf(argument: string): number | undefined {
  if (argument === 'off') return 0;
  if (argument === 'on') return THINK_ON_TOKENS;
  if (!/^\d+$/.test(argument)) return undefined;
  const tokens = Number(argument);
  return tokens === 0 ? 0 : Math.min(THINK_MAX_TOKENS, Math.max(THINK_MIN_TOKENS, tokens));
}

async function changeQueue({ session }: CommandOrigin, argument: string, deps: CommandDeps) {
  const chosen: SessionSettings = await deps.settings.get(session);
  if (argument === 'steer' || argument === 'followup') {
    await deps.settings.set(session, { ...chosen, queueMode: argument });
    return argument === 'steer'
      ? 'Messages sent during an answer join it.'
      : 'Messages sent during an answer wait for the next one.';
  }
  const mode = chosen.queueMode ?? deps.defaults().queueMode;
  return `Messages sent during an answer: ${mode}. Change it with /queue steer or /queue followup.`;
}

function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

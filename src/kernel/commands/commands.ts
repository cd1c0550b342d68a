// The registry of chat commands: finds the command in a text, decides whether its sender may use
// it, and runs it. It provides /start and /help itself.

import { headOf, nearestName } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import { parseCommand } from '../access/admission.ts';
import type { Contributed } from '../contributions.ts';
import { NanobotError } from '../message/errors.ts';
import { type InboundMessage, sessionOf } from '../message/message.ts';
import type { AuditLog } from '../observe/telemetry.ts';
import {
  auditExtent,
  type Command,
  type CommandOrigin,
  type CommandTable,
  type CommandVerdict,
  commandsOf,
  EVERYBODY,
  mayGive,
} from './command-access.ts';

/** Of a command, in the audit file. */
const MAX_AUDITED_CHARS = 200;

export const WELCOME =
  t`Hello! Write to me as you would to a person. I answer questions, read pictures and documents that ` +
  t`you send, look things up on the web, remember what you ask me to, and remind you.\n\n` +
  t`For example: “Remind me at 18:00 to call Ada.” or “What does this document say?”\n\n` +
  '/new begins a new conversation, /stop ends an answer, /help lists all commands.';

export const BASIC_COMMANDS = {
  start: { summary: t`say hello`, access: EVERYBODY, timing: 'immediate' },
  help: {
    summary: t`list the commands`,
    usage: '/help [command]',
    access: EVERYBODY,
    timing: 'immediate',
  },
} satisfies CommandTable;

type Giver = Omit<CommandOrigin, 'session'>;

export interface Commands {
  /**
   * The command in a text; undefined if the text is a message. A mistyped name finds `/help`; a
   * text similar to no name is a message, e.g. a path.
   */
  find(text: string): Command | undefined;
  /** The command's answer, or the user-facing text of an error that has one. */
  run(command: Command, giver: Giver): Promise<string>;
}

type CommandsDeps = {
  readonly contributed: Pick<Contributed, 'commands'>;
  /** Records decisions that are made by commands. */
  readonly audit: AuditLog;
};

export function createCommands({ contributed, audit }: CommandsDeps): Commands {
  const basic: readonly Command[] = commandsOf(BASIC_COMMANDS, {
    start: async () => WELCOME,
    help: async (origin, argument) => helpText(allowedTo(origin), argument),
  });
  const all = (): readonly Command[] => [...basic, ...contributed.commands()];
  const allowedTo = (giver: Giver) =>
    all().filter(({ access }) => mayGive(access, standingOf(giver)) === 'yes');
  return {
    find(text) {
      const name = parseCommand(text)?.name;
      if (name === undefined) return undefined;
      const found = all().find((command) => isNamed(command, name));
      if (found !== undefined || meantBy(name, all()) === undefined) return found;
      const run: Command['run'] = async (origin) => didYouMean(name, allowedTo(origin));
      return { ...BASIC_COMMANDS.help, name: 'help', run };
    },
    async run(command, giver) {
      const verdict = mayGive(command.access, standingOf(giver));
      if (verdict !== 'yes') return REFUSALS[verdict];
      const { message } = giver;
      const argument = parseCommand(message.text)?.argument ?? '';
      if (argument !== '') enter(command, message, audit);
      try {
        return await command.run({ ...giver, session: sessionOf(message) }, argument);
      } catch (error) {
        if (error instanceof NanobotError && error.userText !== undefined) return error.userText;
        throw error;
      }
    },
  };
}

function enter({ name, access }: Command, message: InboundMessage, audit: AuditLog): void {
  const { sender, text } = message;
  const extent = auditExtent(access);
  if (extent === 'none') return;
  const by = sender.kind === 'person' ? sender.id : sender.source;
  const command = extent === 'whole' ? headOf(text, MAX_AUDITED_CHARS) : `/${name}`;
  audit.note({ kind: 'command', fields: { command, by, session: sessionOf(message) } });
}

const REFUSALS: Readonly<Record<Exclude<CommandVerdict, 'yes'>, string>> = {
  'not this role': t`Only my owner can do that.`,
  'not here': t`This works only in a private chat with me.`,
  'not verified': t`I cannot verify who sent this, so I did nothing.`,
};

/** A sender who was let in for one message is a guest, and so is the gateway itself. */
function standingOf({ message, role }: Giver): Parameters<typeof mayGive>[1] {
  const { sender, addressing, group } = message;
  return {
    role: role ?? 'guest',
    place: addressing === 'direct' && group === undefined ? 'direct' : 'group',
    verified: sender.kind === 'person' ? sender.verified : 'verified',
  };
}

// The text of `/help`: the commands a person may use, by subject, short enough for a phone; and the
// answer to a mistyped command.

type Named = Pick<Command, 'name' | 'summary' | 'usage' | 'aliases'>;

const isNamed = ({ name, aliases = [] }: Named, asked: string) =>
  name === asked || aliases.includes(asked);

/** In display order. */
export const COMMAND_GROUPS: readonly (readonly [string, readonly string[]])[] = [
  [
    t`This conversation`,
    ['new', 'restore', 'undo', 'stop', 'compact', 'context', 'trust', 'sessions', 'continue'],
  ],
  [t`How I answer`, ['model', 'local', 'mode', 'think', 'queue', 'skills']],
  [t`What I do`, ['status', 'why', 'cron', 'workflow', 'agents', 'kill', 'usage', 'cost']],
  [
    t`You`,
    [
      'whoami',
      'me',
      'language',
      'timezone',
      'quiet',
      'link',
      'unlink',
      'memory',
      'forget',
      'export',
    ],
  ],
  [
    t`For the owner`,
    ['approvals', 'budget', 'people', 'strangers', 'allow', 'block', 'drop', 'cluster', 'mcp'],
  ],
];

/** `asked`: the command to describe, or `all`; empty: the names of `mine` by groups. */
function helpText(mine: readonly Named[], asked: string): string {
  const wanted = asked.toLowerCase().replace(/^\//, '').trim();
  const one = mine.find((command) => isNamed(command, wanted));
  if (one !== undefined) return `${one.usage ?? `/${one.name}`}: ${one.summary}`;
  const groups = COMMAND_GROUPS.flatMap(([title, names]) => {
    const commands = names.flatMap((name) => mine.find((each) => each.name === name) ?? []);
    if (commands.length === 0) return [];
    if (wanted !== 'all') {
      return [`**${title}**: ${commands.map(({ name }) => `/${name}`).join(' ')}`];
    }
    const lines = commands.map(({ name, summary }) => `- /${name}: ${summary}`);
    return [`**${title}**\n${lines.join('\n')}`];
  });
  return [
    ...groups,
    '/help all explains every command, /help <command> shows how to use one.',
  ].join('\n\n');
}

/** The intended command, if the typed name is similar to one. */
export function meantBy(typed: string, known: readonly Named[]): string | undefined {
  return nearestName(typed, known.map(({ name }) => name).toSorted(byPlaceInHelp));
}

const IN_HELP = COMMAND_GROUPS.flatMap(([, names]) => names);
/**
 * Of two equally similar names the same one is suggested, in whichever order features contribute.
 */
const byPlaceInHelp = (a: string, b: string) => IN_HELP.indexOf(a) - IN_HELP.indexOf(b);

function didYouMean(typed: string, mine: readonly Named[]): string {
  const meant = meantBy(typed, mine);
  const hint = meant === undefined ? '' : t` Did you mean /${meant}?`;
  return t`Unknown command /${typed}.${hint} /help lists all commands. To send this as a message, leave out the slash.`;
}

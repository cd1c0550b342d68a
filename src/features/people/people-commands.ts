// `/whoami`, and the owner's decisions about strangers; with the other chat commands about people.

import { EVERYBODY, OWNER_ONLY } from '../../kernel/access/command-access.ts';
import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command.ts';
import { idsOf } from '../../kernel/message/message.ts';
import { strangerLine, verbatim } from '../../kernel/message/untrusted.ts';
import { type ContinueCommandDeps, continueCommands } from './continue-command.ts';
import type { Subject } from './decisions.ts';
import { knownPeopleCommands } from './known-people-commands.ts';
import { type LinkCommandDeps, linkCommands } from './link-commands.ts';
import type { People } from './people.ts';
import { personCommands } from './person-commands.ts';

export const PEOPLE_COMMANDS = {
  whoami: { summary: 'show who you are to me', access: EVERYBODY, timing: 'immediate' },
  strangers: {
    summary: 'list who wrote and waits for your decision',
    access: OWNER_ONLY,
    timing: 'immediate',
  },
  allow: {
    summary: 'answer a stranger: this once, or from now on',
    usage: '/allow [once] [channel] <id or code>',
    access: OWNER_ONLY,
    timing: 'immediate',
  },
  block: {
    summary: 'refuse a person for good',
    usage: '/block [channel] <id or code>',
    access: OWNER_ONLY,
    timing: 'immediate',
  },
  drop: {
    summary: 'leave what a stranger wrote to you, unanswered',
    usage: '/drop [channel] <id or code>',
    access: OWNER_ONLY,
    timing: 'immediate',
  },
} satisfies CommandTable;

export type PeopleCommandDeps = LinkCommandDeps &
  ContinueCommandDeps & {
    readonly people: People;
    /** The notes in a folder of the workspace. */
    notesOf(folder: string): Promise<string>;
  };

export function peopleCommands(deps: PeopleCommandDeps): readonly Command[] {
  const { people } = deps;
  const { persons } = people;
  const deciding = commandsOf(PEOPLE_COMMANDS, {
    whoami: async (origin) => whoAmI(origin),
    strangers: () => listStrangers(people),
    allow: (_origin, argument) => allow(argument, people),
    block: (_origin, argument) => block(argument, people),
    drop: (_origin, argument) => drop(argument, people),
  });
  const known = knownPeopleCommands(persons, (folder) => deps.notesOf(folder));
  const doors = [...linkCommands(deps), ...continueCommands(deps)];
  return [...deciding, ...personCommands(persons), ...known, ...doors];
}

function whoAmI({ message: { sender, chat }, role }: CommandOrigin): string {
  const ids = sender.kind === 'person' ? idsOf(sender) : [sender.source];
  return [
    `- You: ${ids.map(verbatim).join(', ')}`,
    `- Role: ${role ?? 'let in for one message'}`,
    `- Channel: ${chat.channel}`,
  ].join('\n');
}

async function listStrangers({ strangers }: Pick<People, 'strangers'>): Promise<string> {
  const waiting = await strangers.list();
  if (waiting.length === 0) return 'Nobody waits.';
  return waiting.map((one) => `- ${strangerLine(one)}`).join('\n');
}

async function allow(argument: string, people: People): Promise<string> {
  const [first = '', ...rest] = wordsOf(argument);
  const isOnce = first === 'once';
  const who = await theOne(isOnce ? rest : [first, ...rest], people);
  if (typeof who === 'string') return who;
  const { decisions } = people;
  const lost = lostText(who);
  if (isOnce) {
    if (who.waiting === undefined) return `${nameOf(who)} has no message waiting.`;
    const answered = await decisions.allowOnce(who.waiting);
    return `I answer ${nameOf(who)} this once (${messages(answered)}).${lost}`;
  }
  if (who.role === 'owner') return `${nameOf(who)} is an owner already.`;
  const answered = await decisions.allow(who, who.role === 'guest' ? 'guest' : 'trusted');
  const now = answered === 0 ? '' : `, beginning with what they wrote (${messages(answered)})`;
  return `I answer ${nameOf(who)} from now on${now}.${lost}`;
}

async function block(argument: string, people: People): Promise<string> {
  const who = await theOne(wordsOf(argument), people);
  if (typeof who === 'string') return who;
  if (who.role === 'owner') return 'An owner can be changed only on the machine: nanobot pair.';
  await people.decisions.block(who);
  return `${nameOf(who)} is blocked. ${verbatim(`/allow ${who.channel} ${who.userId}`)} takes it back.`;
}

async function drop(argument: string, people: People): Promise<string> {
  const who = await theOne(wordsOf(argument), people);
  if (typeof who === 'string') return who;
  if (who.waiting === undefined) return `${nameOf(who)} has no message waiting.`;
  await people.decisions.drop(who.waiting);
  return `I answer nothing of what ${nameOf(who)} wrote; nothing is decided about them.`;
}

/** The one person meant, or what to say where that is not clear. */
async function theOne(words: readonly string[], people: People): Promise<Subject | string> {
  const [channel, id] = words.length > 1 ? words : [undefined, words[0]];
  if (id === undefined || id === '') return `Say whom. ${await listStrangers(people)}`;
  const [who, ...others] = await people.decisions.find(id, channel);
  if (who === undefined) {
    return `I know nobody under ${verbatim(id)}; /strangers lists who waits.`;
  }
  if (others.length === 0) return who;
  const choices = [who, ...others].map((one) => verbatim(`${one.channel} ${one.userId}`));
  return `Several people are called that. Say which: ${choices.join(', ')}.`;
}

const wordsOf = (argument: string) => argument.split(/\s+/).filter((word) => word !== '');

function nameOf({ name, userId, channel }: Subject): string {
  return name === ''
    ? `${verbatim(userId)} on ${channel}`
    : `${verbatim(name)} (${verbatim(userId)}) on ${channel}`;
}

const messages = (count: number) => `${count} message${count === 1 ? '' : 's'}`;

function lostText({ waiting }: Subject): string {
  const lost = waiting?.lostMessages ?? 0;
  return lost === 0 ? '' : ` They wrote ${messages(lost)} more than I keep of a stranger.`;
}

// `/whoami`, the owner's decisions about unknown senders, and `/people`: the known people and what one of
// them may use up in a day; with the commands of people about themselves.

import { EVERYBODY, OWNER_ONLY } from '../../kernel/access/command-access.ts';
import {
  limitNamed,
  limitWords,
  PERSON_LIMITS,
  type Person,
  personLine,
  readLimit,
  withChoice,
  withLimit,
} from '../../kernel/access/person.ts';
import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command.ts';
import { idsOf } from '../../kernel/message/message.ts';
import { PEOPLE_FOLDER } from '../../kernel/message/notes.ts';
import { strangerLine, verbatim } from '../../kernel/message/untrusted.ts';
import type { People } from './people.ts';
import { type PersonCommandDeps, personCommands } from './person-commands.ts';
import type { Persons } from './persons.ts';
import { counted, type Subject } from './strangers.ts';

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

export const KNOWN_PEOPLE_COMMANDS = {
  people: {
    summary: 'list the people I know, limit what one of them uses up, or show their notes',
    usage: '/people [<person> [notes | <limit> <number> | <limit> auto]]',
    access: OWNER_ONLY,
    timing: 'immediate',
  },
} satisfies CommandTable;

export type PeopleCommandDeps = PersonCommandDeps & {
  readonly people: People;
  /** The notes in a folder of the workspace. */
  notesOf(folder: string): Promise<string>;
};

export function peopleCommands(deps: PeopleCommandDeps): readonly Command[] {
  const { people } = deps;
  const deciding = commandsOf(
    { ...PEOPLE_COMMANDS, ...KNOWN_PEOPLE_COMMANDS },
    {
      whoami: async (origin) => whoAmI(origin),
      strangers: () => listStrangers(people),
      allow: (_origin, argument) => allow(argument, people),
      block: (_origin, argument) => block(argument, people),
      drop: (_origin, argument) => drop(argument, people),
      people: (_origin, argument) => aboutPeople(wordsOf(argument), deps),
    },
  );
  return [...deciding, ...personCommands(deps)];
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
    return `I answer ${nameOf(who)} this once (${counted(answered)}).${lost}`;
  }
  if (who.role === 'owner') return `${nameOf(who)} is an owner already.`;
  const answered = await decisions.allow(who, who.role === 'guest' ? 'guest' : 'trusted');
  const now = answered === 0 ? '' : `, beginning with what they wrote (${counted(answered)})`;
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

function lostText({ waiting }: Subject): string {
  const lost = waiting?.lostMessages ?? 0;
  return lost === 0 ? '' : ` They wrote ${counted(lost)} more than I keep of a stranger.`;
}

const MAX_LISTED = 50;
const NOTES = 'notes';
const OWNERS_NOTES = 'The notes of owners are shown by /memory.';
/** Takes a limit back. */
const AUTOMATIC = 'auto';

async function aboutPeople(
  words: readonly string[],
  { people: { persons }, notesOf }: PeopleCommandDeps,
): Promise<string> {
  if (words.length === 0) return listPeople(await persons.list());
  const typed = words.at(-1)?.toLowerCase() ?? '';
  if (words.length > 1 && typed === NOTES) {
    return withOne(words.slice(0, -1).join(' '), persons, ({ id, role }) =>
      role === 'owner' ? OWNERS_NOTES : notesOf(`${PEOPLE_FOLDER}/${id}/`),
    );
  }
  const limit = limitNamed(words.at(-2)?.toLowerCase() ?? '');
  if (limit === undefined) return withOne(words.join(' '), persons, aboutOne);
  const value = readLimit(limit, typed);
  if (typed !== AUTOMATIC && value === undefined) {
    return `${verbatim(typed)} is no number of ${limit.words}. ${HINT}`;
  }
  return withOne(words.slice(0, -2).join(' '), persons, async ({ id }) => {
    const changed = await persons.change(id, (record) =>
      withChoice(record, 'limits', withLimit(record.limits, limit, value)),
    );
    return changed === undefined ? 'I know them no longer.' : aboutOne(changed);
  });
}

const HINT =
  `Say /people with an id or name, one of ${PERSON_LIMITS.map(({ name }) => name).join(', ')}, and a ` +
  'number; 0 is no limit, auto is what the configuration says.';

async function withOne(
  typed: string,
  persons: Pick<Persons, 'find'>,
  run: (person: Person) => string | Promise<string>,
): Promise<string> {
  const [person, ...others] = await persons.find(typed);
  if (person === undefined) return `I know nobody called ${verbatim(typed)}. ${HINT}`;
  if (others.length === 0) return run(person);
  const ids = [person, ...others].map(({ id }) => verbatim(id)).join(', ');
  return `Several people are called that. Say which: ${ids}.`;
}

function aboutOne(person: Person): string {
  const limits = limitWords(person.limits) ?? 'what the configuration says';
  return `- ${personLine(person)}\n- At most: ${limits}`;
}

function listPeople(people: readonly Person[]): string {
  if (people.length === 0) return 'Nobody has written to me yet.';
  const shown = people.slice(0, MAX_LISTED).map((person) => `- ${personLine(person)}`);
  const more = people.length - shown.length;
  const rest = more === 0 ? [] : [`- and ${more} more: ${verbatim('nanobot people list')}`];
  return [...shown, ...rest].join('\n');
}

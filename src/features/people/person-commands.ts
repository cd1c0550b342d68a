// The chat commands with which people see and set what is kept about them.

import { PERSONAL } from '../../kernel/access/command-access.ts';
import {
  CONVERSATIONS,
  doorOf,
  doorWords,
  languageTag,
  languageWords,
  limitWords,
  type Person,
  withChoice,
} from '../../kernel/access/person.ts';
import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import { isTimeZone } from '../../lib/time/zone-time.ts';
import type { Persons } from './persons.ts';

/** Takes a choice back. */
const AUTOMATIC = 'auto';

export const PERSON_COMMANDS = {
  me: {
    summary: 'show or change what I keep about you',
    usage: '/me [door <door> | conversations shared | each]',
    access: PERSONAL,
    timing: 'immediate',
  },
  language: {
    summary: 'the language I answer you in',
    usage: '/language [de | German | auto]',
    access: PERSONAL,
    timing: 'immediate',
  },
  timezone: {
    summary: 'the time zone I take for yours',
    usage: '/timezone [Europe/Berlin | auto]',
    access: PERSONAL,
    timing: 'immediate',
  },
} satisfies CommandTable;

export function personCommands(persons: Persons): readonly Command[] {
  return commandsOf(PERSON_COMMANDS, {
    me: (origin, argument) =>
      withPerson(origin, persons, async (person) => {
        const [setting, value = ''] = argument.toLowerCase().split(/\s+/);
        if (setting === '') return aboutMe(person);
        if (setting === 'conversations') return setConversations(person, origin, value, persons);
        if (setting === 'door') return setDoor(person, value, persons);
        return ME_HINT;
      }),
    language: (origin, argument) =>
      withPerson(origin, persons, (person) => setLanguage(person, argument, persons)),
    timezone: (origin, argument) =>
      withPerson(origin, persons, (person) => setTimeZone(person, argument, persons)),
  });
}

/** Only in a private chat, and only where the sender is verified. */
export async function withPerson(
  { message }: CommandOrigin,
  persons: Pick<Persons, 'author' | 'get'>,
  run: (person: Person) => Promise<string>,
): Promise<string> {
  const { sender, addressing } = message;
  if (addressing !== 'direct') return 'I do that only between the two of us.';
  const isSure = sender.kind === 'person' && sender.verified !== 'unverified';
  const author = isSure ? await persons.author(message) : undefined;
  const person = author === undefined ? undefined : await persons.get(author.id);
  if (person === undefined) return 'I keep nothing about you.';
  return run(person);
}

function aboutMe(person: Person): string {
  const limits = limitWords(person.limits);
  const { id, name, role, doors, timeZone, conversations, preferredDoor, quietHours } = person;
  return [
    `- You: ${name === '' ? '' : `${verbatim(name)}, `}${verbatim(id)}`,
    `- Role: ${role ?? 'let in for one message'}`,
    `- Doors: ${doors.map(doorWords).join('; ')}`,
    ...(preferredDoor === undefined ? [] : [`- Preferred door: ${preferredDoor}`]),
    `- Language: ${languageWords(person)}`,
    `- Time zone: ${timeZone ?? 'that of my machine'}`,
    ...(quietHours === undefined ? [] : [`- Quiet hours: ${quietHours}`]),
    ...(limits === undefined ? [] : [`- At most: ${limits}`]),
    `- ${conversations === 'shared' ? SHARED_NOW : EACH_NOW}`,
  ].join('\n');
}

async function setLanguage(person: Person, argument: string, persons: Persons) {
  if (argument === '') return `I answer you in ${languageWords(person)}. ${LANGUAGE_HINT}`;
  const language = argument === AUTOMATIC ? undefined : languageTag(argument);
  if (argument !== AUTOMATIC && language === undefined) {
    return 'Unknown language. Try: de, en, fr';
  }
  await persons.change(person.id, (record) => withChoice(record, 'language', language));
  return `I answer you in ${languageWords(language === undefined ? {} : { language })} from now on.`;
}

async function setTimeZone(person: Person, argument: string, persons: Persons) {
  if (argument === '') {
    return `Your time zone is ${person.timeZone ?? 'that of my machine'}. ${ZONE_HINT}`;
  }
  if (argument !== AUTOMATIC && !isTimeZone(argument)) {
    return 'Unknown time zone. Try: Europe/Berlin, America/New_York';
  }
  const timeZone = argument === AUTOMATIC ? undefined : argument;
  await persons.change(person.id, (record) => withChoice(record, 'timeZone', timeZone));
  return `I take ${timeZone ?? "my machine's time zone"} for yours from now on.`;
}

async function setDoor(person: Person, value: string, persons: Persons): Promise<string> {
  const door = doorOf(person, value);
  const doors = person.doors.map(({ channel }) => channel).join(', ');
  if (door === undefined) return `Say /me door with one of ${doors}.`;
  await persons.change(person.id, (record) => withChoice(record, 'preferredDoor', door.channel));
  return `Where one of your doors is down, I write to you on ${door.channel} first.`;
}

async function setConversations(
  person: Person,
  { session }: CommandOrigin,
  argument: string,
  persons: Persons,
): Promise<string> {
  const wanted = CONVERSATIONS.find((each) => each === argument);
  if (wanted === undefined) {
    const now = person.conversations === 'shared' ? SHARED_NOW : EACH_NOW;
    return `${now} Change it with ${verbatim('/me conversations shared')} or ${verbatim('/me conversations each')}.`;
  }
  await persons.change(person.id, (record) => ({
    ...withChoice(record, 'session', wanted === 'shared' ? session : undefined),
    conversations: wanted,
  }));
  return wanted === 'shared' ? SHARED_NOW : EACH_NOW;
}

const LANGUAGE_HINT = 'Change it with `/language de`, `/language German` or `/language auto`.';
const ZONE_HINT = 'Say /timezone with a name like `Europe/Berlin`, or /timezone auto.';
const ME_HINT =
  'Say /me, /me door with one of your doors, or /me conversations with shared or each.';
const SHARED_NOW = 'All your doors share one conversation; I answer where you ask.';
const EACH_NOW = 'Each of your doors has its own conversation.';

// The `/commands` by which people see and set what is kept of them.

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
import type { Command, CommandDeps, CommandOrigin } from '../../kernel/commands/command.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import { isTimeZone } from '../../lib/time/zone-time.ts';

/** Takes a choice back. */
const AUTOMATIC = 'auto';

export const PERSON_COMMANDS: readonly Command[] = [
  {
    name: 'me',
    summary: 'show or change what I keep about you',
    usage: '/me [door <door> | conversations shared | each]',
    timing: 'immediate',
    run: (origin, argument, deps) =>
      withPerson(origin, deps, async (person) => {
        const [setting, value = ''] = argument.toLowerCase().split(/\s+/);
        if (setting === '') return aboutMe(person);
        if (setting === 'conversations') return setConversations(person, origin, value, deps);
        if (setting === 'door') return setDoor(person, value, deps);
        return ME_HINT;
      }),
  },
  {
    name: 'language',
    summary: 'the language I answer you in',
    usage: '/language [de | German | auto]',
    timing: 'immediate',
    run: (origin, argument, deps) =>
      withPerson(origin, deps, (person) => setLanguage(person, argument, deps)),
  },
  {
    name: 'timezone',
    summary: 'the time zone I take for yours',
    usage: '/timezone [Europe/Berlin | auto]',
    timing: 'immediate',
    run: (origin, argument, deps) =>
      withPerson(origin, deps, (person) => setTimeZone(person, argument, deps)),
  },
];

/** Only between the two of us, and only where it is sure who writes. */
export async function withPerson(
  { message }: CommandOrigin,
  { people }: CommandDeps,
  run: (person: Person) => Promise<string>,
): Promise<string> {
  const { sender, addressing } = message;
  if (addressing !== 'direct') return 'I do that only between the two of us.';
  const isSure = sender.kind === 'person' && sender.verified !== 'unverified';
  const author = isSure ? await people.persons.author(message) : undefined;
  const person = author === undefined ? undefined : await people.persons.get(author.id);
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

async function setLanguage(person: Person, argument: string, { people }: CommandDeps) {
  if (argument === '') return `I answer you in ${languageWords(person)}. ${LANGUAGE_HINT}`;
  const language = argument === AUTOMATIC ? undefined : languageTag(argument);
  if (argument !== AUTOMATIC && language === undefined) {
    return 'Unknown language. Try: de, en, fr';
  }
  await people.persons.change(person.id, (record) => withChoice(record, 'language', language));
  return `I answer you in ${languageWords(language === undefined ? {} : { language })} from now on.`;
}

async function setTimeZone(person: Person, argument: string, { people }: CommandDeps) {
  if (argument === '') {
    return `Your time zone is ${person.timeZone ?? 'that of my machine'}. ${ZONE_HINT}`;
  }
  if (argument !== AUTOMATIC && !isTimeZone(argument)) {
    return 'Unknown time zone. Try: Europe/Berlin, America/New_York';
  }
  const timeZone = argument === AUTOMATIC ? undefined : argument;
  await people.persons.change(person.id, (record) => withChoice(record, 'timeZone', timeZone));
  return `I take ${timeZone ?? "my machine's time zone"} for yours from now on.`;
}

async function setDoor(person: Person, value: string, { people }: CommandDeps): Promise<string> {
  const door = doorOf(person, value);
  const doors = person.doors.map(({ channel }) => channel).join(', ');
  if (door === undefined) return `Say /me door with one of ${doors}.`;
  await people.persons.change(person.id, (record) =>
    withChoice(record, 'preferredDoor', door.channel),
  );
  return `Where one of your doors is down, I write to you on ${door.channel} first.`;
}

async function setConversations(
  person: Person,
  { session }: CommandOrigin,
  argument: string,
  { people }: CommandDeps,
): Promise<string> {
  const wanted = CONVERSATIONS.find((each) => each === argument);
  if (wanted === undefined) {
    const now = person.conversations === 'shared' ? SHARED_NOW : EACH_NOW;
    return `${now} Change it with ${verbatim('/me conversations shared')} or ${verbatim('/me conversations each')}.`;
  }
  await people.persons.change(person.id, (record) => ({
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

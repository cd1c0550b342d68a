// `/people`: shows an owner the known people, and changes what one of them may use up in a day.

import { OWNER_ONLY } from '../../kernel/access/command-access.ts';
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
import { type Command, type CommandTable, commandsOf } from '../../kernel/commands/command.ts';
import { PEOPLE_FOLDER } from '../../kernel/message/notes.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import type { Persons } from './persons.ts';

const MAX_LISTED = 50;
const NOTES = 'notes';
const OWNERS_NOTES = 'The notes of owners are shown by /memory.';
/** Takes a limit back. */
const AUTOMATIC = 'auto';

export const KNOWN_PEOPLE_COMMANDS = {
  people: {
    summary: 'list the people I know, limit what one of them uses up, or show their notes',
    usage: '/people [<person> [notes | <limit> <number> | <limit> auto]]',
    access: OWNER_ONLY,
    timing: 'immediate',
  },
} satisfies CommandTable;

/** `notesOf`: the notes in a folder of the workspace. */
export function knownPeopleCommands(
  persons: Persons,
  notesOf: (folder: string) => Promise<string>,
): readonly Command[] {
  return commandsOf(KNOWN_PEOPLE_COMMANDS, {
    async people(_origin, argument) {
      const words = argument.split(/\s+/).filter((word) => word !== '');
      if (words.length === 0) return listPeople(await persons.list());
      if (words.length > 1 && words.at(-1)?.toLowerCase() === NOTES) {
        return withOne(words.slice(0, -1).join(' '), persons, ({ id, role }) =>
          role === 'owner' ? OWNERS_NOTES : notesOf(`${PEOPLE_FOLDER}/${id}/`),
        );
      }
      const limit = limitNamed(words.at(-2)?.toLowerCase() ?? '');
      if (limit === undefined) return withOne(words.join(' '), persons, aboutOne);
      const typed = words.at(-1)?.toLowerCase() ?? '';
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
    },
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

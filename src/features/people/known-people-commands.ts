// The `/command` by which an owner sees who is known, and what one of them may use up in a day.

import type { Person } from '../../kernel/access/person.ts';
import {
  limitNamed,
  limitWords,
  PERSON_LIMITS,
  personLine,
  readLimit,
  withChoice,
  withLimit,
} from '../../kernel/access/person.ts';
import type { Command, CommandDeps } from '../../kernel/commands/command.ts';
import { PEOPLE_FOLDER } from '../../kernel/message/notes.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';

const MAX_LISTED = 50;
const NOTES = 'notes';
const OWNERS_NOTES = 'The notes of owners are shown by /memory.';
/** Takes a limit back. */
const AUTOMATIC = 'auto';

export const KNOWN_PEOPLE_COMMANDS: readonly Command[] = [
  {
    name: 'people',
    summary: 'list the people I know, limit what one of them uses up, or show their notes',
    usage: '/people [<person> [notes | <limit> <number> | <limit> auto]]',
    timing: 'immediate',
    run: async (_origin, argument, deps) => {
      const words = argument.split(/\s+/).filter((word) => word !== '');
      if (words.length === 0) return listPeople(await deps.people.persons.list());
      if (words.length > 1 && words.at(-1)?.toLowerCase() === NOTES) {
        return withOne(words.slice(0, -1).join(' '), deps, ({ id, role }) =>
          role === 'owner' ? OWNERS_NOTES : deps.memory.notesOf(`${PEOPLE_FOLDER}/${id}/`),
        );
      }
      const limit = limitNamed(words.at(-2)?.toLowerCase() ?? '');
      if (limit === undefined) return withOne(words.join(' '), deps, aboutOne);
      const typed = words.at(-1)?.toLowerCase() ?? '';
      const value = readLimit(limit, typed);
      if (typed !== AUTOMATIC && value === undefined) {
        return `${verbatim(typed)} is no number of ${limit.words}. ${HINT}`;
      }
      return withOne(words.slice(0, -2).join(' '), deps, async ({ id }) => {
        const changed = await deps.people.persons.change(id, (record) =>
          withChoice(record, 'limits', withLimit(record.limits, limit, value)),
        );
        return changed === undefined ? 'I know them no longer.' : aboutOne(changed);
      });
    },
  },
];

const HINT =
  `Say /people with an id or name, one of ${PERSON_LIMITS.map(({ name }) => name).join(', ')}, and a ` +
  'number; 0 is no limit, auto is what the configuration says.';

async function withOne(
  typed: string,
  { people }: CommandDeps,
  run: (person: Person) => string | Promise<string>,
): Promise<string> {
  const [person, ...others] = await people.persons.find(typed);
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

// `nanobot people`: who is known over which doors, and changing what is kept of them by hand, with the
// gateway running or not.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { CommandFailure, EXIT, type Terminal, textTable, withState } from '../../cli/terminal.ts';
import { ADMITTED_ROLES, type AdmittedRole } from '../../kernel/access/admission.ts';
import {
  CONVERSATIONS,
  type Conversations,
  chatsOf,
  doorOf,
  languageTag,
  limitWords,
  PERSON_LIMITS,
  type Person,
  type PersonRecord,
  readLimit,
  withChoice,
  withLimit,
} from '../../kernel/access/person.ts';
import { sessionKeyOf } from '../../kernel/message/message.ts';
import { PEOPLE_FOLDER } from '../../kernel/message/notes.ts';
import { isTimeZone } from '../../lib/time/zone-time.ts';
import { quietHoursOf } from '../schedule/rules/quiet-hours.ts';
import type { People } from './people.ts';

/** As commander hands them over; further ones are of limits. */
type SetFlags = {
  readonly name?: string;
  readonly role?: AdmittedRole;
  readonly door?: string;
  readonly conversations?: Conversations;
  readonly [flag: string]: string | undefined;
};

/** Takes a choice back. */
const AUTOMATIC = 'auto';

const WHO = 'their id as "nanobot people list" shows it, an id of a channel, or their name';

export function peopleCommand(terminal: Terminal): Command {
  const command = new Command('people').description('the people the agent knows, over all doors');
  command
    .command('list')
    .description('everybody who wrote and was let in')
    .option('--json', 'as JSON')
    .action(({ json }: { readonly json?: boolean }) => listPeople(terminal, json === true));
  command
    .command('show')
    .description('what is kept of a person')
    .argument('<person>', WHO)
    .option('--json', 'as JSON')
    .action((typed: string, { json }: { readonly json?: boolean }) =>
      showPerson(terminal, typed, json === true),
    );
  command
    .command('set')
    .description('change what is kept of a person; the value auto takes a choice back')
    .argument('<person>', WHO)
    .option('--name <name>', 'how they are listed')
    .addOption(
      new Option('--role <role>', 'what they are to the agent, on all their doors').choices(
        ADMITTED_ROLES,
      ),
    )
    .option('--language <tag>', 'e.g. de')
    .option('--timezone <zone>', 'e.g. Europe/Berlin')
    .option('--quiet <hours>', 'when nothing of its own accord disturbs them: 22:00-07:00, or off')
    .option('--door <channel>', 'where they are written to first when another door is down')
    .addOption(
      new Option('--conversations <how>', 'one conversation on each door, or one over all').choices(
        CONVERSATIONS,
      ),
    )
    .option('--messages-per-minute <n>', 'answered at most, over all doors; 0: no limit')
    .option('--messages-per-day <n>', 'the same in a day')
    .option('--tokens-per-day <n>', 'that their turns may take in a day; 0: no limit')
    .option('--money-per-day <amount>', 'that their turns may cost in a day; 0: no limit')
    .action((typed: string, flags: SetFlags) => setPerson(terminal, typed, flags));
  command
    .command('merge')
    .description('make one person of two: the doors of the second become doors of the first')
    .argument('<person>', WHO)
    .argument('<other>', WHO)
    .action((first: string, second: string) => mergeTwo(terminal, first, second));
  command
    .command('forget')
    .description('delete what is kept of a person: doors, role and notes')
    .argument('<person>', WHO)
    .action((typed: string) => forget(terminal, typed));
  return command;
}

async function listPeople(terminal: Terminal, json: boolean) {
  const people = await withState(terminal, (state) => state.people.persons.list());
  if (json) return terminal.printJson(people);
  const rows = people.map(({ id, name, role, doors }) => [
    id,
    name,
    role ?? 'by configuration',
    doors.map(({ channel, ids }) => `${channel} ${ids.join(', ')}`).join('; '),
  ]);
  for (const line of textTable(rows)) terminal.print(line);
  if (rows.length === 0) terminal.note('Nobody has written yet.');
}

async function showPerson(terminal: Terminal, typed: string, json: boolean) {
  const person = await withState(terminal, ({ people }) => theOne(people, typed));
  if (json) return terminal.printJson(person);
  const doors = person.doors.map(({ channel, ids }) => ['Door', `${channel} ${ids.join(', ')}`]);
  const rows = [
    ['Id', person.id],
    ['Name', person.name],
    ['Role', person.role ?? 'as configured for the channel'],
    ...doors,
    ['Language', person.language ?? 'that of the message'],
    ['Time zone', person.timeZone ?? 'as configured'],
    ['Quiet hours', person.quietHours ?? 'as configured'],
    ['Limits', limitWords(person.limits) ?? 'as configured'],
  ];
  for (const line of textTable(rows)) terminal.print(line);
}

async function setPerson(terminal: Terminal, typed: string, flags: SetFlags) {
  const changes = changesOf(flags);
  await withState(terminal, async ({ people }) => {
    const { id, doors, name } = await theOne(people, typed);
    await people.persons.change(id, (record) =>
      changes.reduce((changed, change) => change(changed), record),
    );
    if (flags.role !== undefined) await people.pairing.approveAll({ doors, name }, flags.role);
  });
  terminal.note('Changed.');
}

type Change = (record: PersonRecord) => PersonRecord;

/** By the name of the flag: the field, its one spelling, and what is said where it has none. */
const CHOICES = {
  language: ['language', languageTag, () => 'Unknown language. Try: de, en, fr'],
  timezone: ['timeZone', zoneNamed, (typed) => `${typed} is no time zone, like "Europe/Berlin"`],
  quiet: ['quietHours', quietHoursOf, (typed) => `${typed} are no hours, like "22:00-07:00"`],
} as const satisfies Readonly<
  Record<
    string,
    readonly [
      field: keyof PersonRecord,
      read: (typed: string) => string | undefined,
      problem: (typed: string) => string,
    ]
  >
>;

function zoneNamed(typed: string): string | undefined {
  return isTimeZone(typed) ? typed : undefined;
}

/** @throws CommandFailure where nothing is to be changed or a value is no such thing. */
function changesOf(flags: SetFlags): readonly Change[] {
  const { name, role, door, conversations } = flags;
  const changes: Change[] = [];
  if (name !== undefined) changes.push((record) => ({ ...record, name }));
  for (const [flag, [field, read, problem]] of Object.entries(CHOICES)) {
    const typed = flags[flag];
    if (typed === undefined) continue;
    const value = typed === AUTOMATIC ? undefined : read(typed);
    if (typed !== AUTOMATIC && value === undefined) {
      throw new CommandFailure(EXIT.usage, problem(typed));
    }
    changes.push((record) => withChoice(record, field, value));
  }
  if (door !== undefined) changes.push((record) => withDoorFirst(record, door));
  if (conversations !== undefined) {
    changes.push((record) => withConversations(record, conversations));
  }
  changes.push(...limitChanges(flags));
  if (changes.length === 0 && role === undefined) {
    throw new CommandFailure(EXIT.usage, 'say what to set; --help lists it');
  }
  return changes;
}

/** @throws CommandFailure where it is no door of theirs. */
function withDoorFirst(record: PersonRecord, typed: string): PersonRecord {
  const door = doorOf(record, typed);
  if (door === undefined && typed !== AUTOMATIC) {
    throw new CommandFailure(EXIT.usage, `${typed} is no door of theirs`);
  }
  return withChoice(record, 'preferredDoor', door?.channel);
}

/** @throws CommandFailure where there is nothing to share yet. */
function withConversations(record: PersonRecord, conversations: Conversations): PersonRecord {
  if (conversations === 'each')
    return { ...withChoice(record, 'session', undefined), conversations };
  const [chat] = chatsOf(record);
  if (chat === undefined) throw new CommandFailure(EXIT.usage, 'they have no chat yet');
  return { ...record, conversations, session: record.session ?? sessionKeyOf(chat) };
}

async function mergeTwo(terminal: Terminal, first: string, second: string) {
  const merged = await withState(terminal, async ({ people }) => {
    const [one, other] = [await theOne(people, first), await theOne(people, second)];
    return people.persons.merge(one.id, other);
  });
  if (merged === undefined) throw new CommandFailure(EXIT.usage, 'that is one person already');
  terminal.note(
    `${merged.id} is reached on ${merged.doors.map((door) => door.channel).join(', ')}.`,
  );
}

async function forget(terminal: Terminal, typed: string) {
  const person = await withState(terminal, async ({ people }) => {
    const one = await theOne(people, typed);
    for (const { channel, ids } of one.doors) {
      for (const id of ids) await people.pairing.revoke(channel, id);
    }
    await people.persons.forget(one.id);
    return one;
  });
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const { config } = await loadConfig(terminal.home, terminal.env);
  const notes = join(config.agents.defaults.workspace, PEOPLE_FOLDER, person.id);
  await rm(notes, { recursive: true, force: true });
  const { forgetIndexed } = await import('../privacy/session-care.ts');
  await forgetIndexed(terminal.home, config.agents.defaults.workspace);
  terminal.note(
    'Forgotten, with their notes. An allow list of a channel still counts; what was said is under "nanobot sessions".',
  );
}

/** @throws CommandFailure where nobody or more than one is meant. */
async function theOne({ persons }: People, typed: string): Promise<Person> {
  const [person, ...others] = await persons.find(typed);
  if (person === undefined) {
    throw new CommandFailure(
      EXIT.notFound,
      `nobody is known as ${typed}; see "nanobot people list"`,
    );
  }
  if (others.length === 0) return person;
  const ids = [person, ...others].map(({ id }) => id).join(', ');
  throw new CommandFailure(EXIT.usage, `several people are called that: ${ids}`);
}

/** @throws CommandFailure where a value of a limit is no such number. */
function limitChanges(flags: SetFlags): readonly Change[] {
  return PERSON_LIMITS.flatMap((limit) => {
    // As commander spells it.
    const flag = limit.name.replace(/-(\w)/g, (_dash, letter: string) => letter.toUpperCase());
    const typed = flags[flag];
    if (typed === undefined) return [];
    const value = readLimit(limit, typed);
    if (typed !== AUTOMATIC && value === undefined) {
      throw new CommandFailure(EXIT.usage, `${typed} is no number of ${limit.words}`);
    }
    return [
      (record: PersonRecord) =>
        withChoice(record, 'limits', withLimit(record.limits, limit, value)),
    ];
  });
}

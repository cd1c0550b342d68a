// The command `nanobot people`: known people with their channels and settings, with or without a
// running gateway.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { CommandFailure, EXIT, type Terminal, textTable, withState } from '../../cli/terminal.ts';
import { ADMITTED_ROLES, type AdmittedRole } from '../../kernel/access/admission.ts';
import {
  CONVERSATIONS,
  type Conversations,
  chatsOf,
  languageTag,
  limitWords,
  PERSON_LIMITS,
  type Person,
  type PersonRecord,
  personChannelOf,
  readLimit,
  withChoice,
  withLimit,
} from '../../kernel/access/person.ts';
import { APPROVAL_POLICIES, type ApprovalPolicy } from '../../kernel/access/rights.ts';
import { sessionKeyOf } from '../../kernel/message/message.ts';
import { PEOPLE_FOLDER } from '../../kernel/message/untrusted.ts';
import type { People } from '../../kernel/people/people.ts';
import { t } from '../../lib/texts.ts';
import { isTimeZone, quietHoursOf } from '../../lib/time/zone-time.ts';

/** As commander passes them; the other flags are limits. */
type SetFlags = {
  readonly name?: string;
  readonly role?: AdmittedRole;
  readonly channel?: string;
  /** The earlier name of `channel`. */
  readonly door?: string;
  readonly conversations?: Conversations;
  readonly [flag: string]: string | undefined;
};

/** Resets a setting. */
const AUTOMATIC = 'auto';

const WHO = t`id from "people list", id on a channel, or name`;

export function peopleCommand(terminal: Terminal): Command {
  const command = new Command('people').description(t`people the agent knows, on all channels`);
  command
    .command('list')
    .description(t`list the people who were let in`)
    .option('--json', t`print as JSON`)
    .action(({ json }: { readonly json?: boolean }) => listPeople(terminal, json === true));
  command
    .command('show')
    .description(t`show what is stored about a person`)
    .argument('<person>', WHO)
    .option('--json', t`print as JSON`)
    .action((typed: string, { json }: { readonly json?: boolean }) =>
      showPerson(terminal, typed, json === true),
    );
  command
    .command('set')
    .description(t`change settings of a person; the value "auto" resets one`)
    .argument('<person>', WHO)
    .option('--name <name>', t`name of the person`)
    .addOption(new Option('--role <role>', t`role on all channels`).choices(ADMITTED_ROLES))
    .option('--language <tag>', t`language of answers, e.g. de`)
    .option('--timezone <zone>', t`time zone, e.g. Europe/Berlin`)
    .option(
      '--quiet <hours>',
      t`hours without messages from the agent first, e.g. 22:00-07:00, or off`,
    )
    .option('--channel <channel>', t`preferred channel when another one is down`)
    .addOption(new Option('--door <channel>', t`the earlier name of --channel`).hideHelp())
    .addOption(
      new Option(
        '--conversations <how>',
        t`one conversation per channel, or one for all channels`,
      ).choices(CONVERSATIONS),
    )
    .option('--approvals <policy>', t`approvals: ${APPROVAL_POLICIES.join(', ')}`)
    .option('--messages-per-minute <n>', t`messages per minute on all channels; 0: no limit`)
    .option('--messages-per-day <n>', t`messages per day on all channels; 0: no limit`)
    .option('--tokens-per-day <n>', t`model tokens per day; 0: no limit`)
    .option('--money-per-day <amount>', t`model cost per day; 0: no limit`)
    .action((typed: string, flags: SetFlags) => setPerson(terminal, typed, flags));
  command
    .command('merge')
    .description(t`merge two people: the first gets the channels of the second`)
    .argument('<person>', WHO)
    .argument('<other>', WHO)
    .action((first: string, second: string) => mergeTwo(terminal, first, second));
  command
    .command('forget')
    .description(t`delete what is stored about a person: channels, role and notes`)
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
    role ?? t`by configuration`,
    doors.map(({ channel, ids }) => `${channel} ${ids.join(', ')}`).join('; '),
  ]);
  for (const line of textTable(rows)) terminal.print(line);
  if (rows.length === 0) terminal.note(t`No people have access yet.`);
}

async function showPerson(terminal: Terminal, typed: string, json: boolean) {
  const person = await withState(terminal, ({ people }) => theOne(people, typed));
  if (json) return terminal.printJson(person);
  const channels = person.doors.map(({ channel, ids }) => [
    t`Channel`,
    `${channel} ${ids.join(', ')}`,
  ]);
  const rows = [
    ['Id', person.id],
    [t`Name`, person.name],
    [t`Role`, person.role ?? t`from the configuration of the channel`],
    ...channels,
    [t`Language`, person.language ?? t`language of each message`],
    [t`Time zone`, person.timeZone ?? t`from the configuration`],
    [t`Quiet hours`, person.quietHours ?? t`from the configuration`],
    [t`Approvals`, person.approvals ?? t`from the configuration`],
    [t`Limits`, limitWords(person.limits) ?? t`from the configuration`],
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
  terminal.note(t`Changed.`);
}

type Change = (record: PersonRecord) => PersonRecord;

/** By flag: the field, its parser, and the error text for an invalid value. */
const CHOICES = {
  language: ['language', languageTag, () => t`Unknown language. Try: de, en, fr`],
  timezone: ['timeZone', zoneNamed, (typed) => t`Unknown time zone ${typed}. Try: Europe/Berlin`],
  approvals: [
    'approvals',
    policyNamed,
    (typed) => t`Unknown policy ${typed}. Try: ${APPROVAL_POLICIES.join(', ')}`,
  ],
  quiet: ['quietHours', quietHoursOf, (typed) => t`Invalid hours ${typed}. Try: 22:00-07:00`],
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

function policyNamed(typed: string): ApprovalPolicy | undefined {
  return APPROVAL_POLICIES.find((policy) => policy === typed);
}

function zoneNamed(typed: string): string | undefined {
  return isTimeZone(typed) ? typed : undefined;
}

/** @throws CommandFailure where nothing is to be changed or a value is invalid */
function changesOf(flags: SetFlags): readonly Change[] {
  const { name, role, conversations } = flags;
  const channel = flags.channel ?? flags.door;
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
  if (channel !== undefined) changes.push((record) => withPreferredChannel(record, channel));
  if (conversations !== undefined) {
    changes.push((record) => withConversations(record, conversations));
  }
  changes.push(...limitChanges(flags));
  if (changes.length === 0 && role === undefined) {
    throw new CommandFailure(
      EXIT.usage,
      t`nothing to change: give at least one option, see --help`,
    );
  }
  return changes;
}

/** @throws CommandFailure where the person does not have this channel */
function withPreferredChannel(record: PersonRecord, typed: string): PersonRecord {
  const channel = personChannelOf(record, typed);
  if (channel === undefined && typed !== AUTOMATIC) {
    throw new CommandFailure(EXIT.usage, t`this person has no channel ${typed}`);
  }
  return withChoice(record, 'preferredDoor', channel?.channel);
}

/** @throws CommandFailure where there is nothing to share yet */
function withConversations(record: PersonRecord, conversations: Conversations): PersonRecord {
  if (conversations === 'each')
    return { ...withChoice(record, 'session', undefined), conversations };
  const [chat] = chatsOf(record);
  if (chat === undefined) throw new CommandFailure(EXIT.usage, t`this person has no chat yet`);
  return { ...record, conversations, session: record.session ?? sessionKeyOf(chat) };
}

async function mergeTwo(terminal: Terminal, first: string, second: string) {
  const merged = await withState(terminal, async ({ people }) => {
    const [one, other] = [await theOne(people, first), await theOne(people, second)];
    return people.persons.merge(one.id, other);
  });
  if (merged === undefined)
    throw new CommandFailure(EXIT.usage, t`both are already the same person`);
  terminal.note(
    t`Merged into ${merged.id}: ${merged.doors.map(({ channel }) => channel).join(', ')}.`,
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
  const { forgetIndexed } = await import('../conversations/session-care.ts');
  await forgetIndexed(terminal.home, config.agents.defaults.workspace);
  terminal.note(
    t`Person and notes deleted. Allow lists of channels still apply; conversations are kept, see "nanobot sessions".`,
  );
}

/** @throws CommandFailure where no person or more than one matches */
async function theOne({ persons }: People, typed: string): Promise<Person> {
  const [person, ...others] = await persons.find(typed);
  if (person === undefined) {
    throw new CommandFailure(
      EXIT.notFound,
      t`there is no person "${typed}"; see "nanobot people list"`,
    );
  }
  if (others.length === 0) return person;
  const ids = [person, ...others].map(({ id }) => id).join(', ');
  throw new CommandFailure(EXIT.usage, t`several people match; use one of the ids: ${ids}`);
}

/** @throws CommandFailure where the value of a limit is invalid */
function limitChanges(flags: SetFlags): readonly Change[] {
  return PERSON_LIMITS.flatMap((limit) => {
    // As commander spells it.
    const flag = limit.name.replace(/-(\w)/g, (_dash, letter: string) => letter.toUpperCase());
    const typed = flags[flag];
    if (typed === undefined) return [];
    const value = readLimit(limit, typed);
    if (typed !== AUTOMATIC && value === undefined) {
      throw new CommandFailure(EXIT.usage, t`"${typed}" is not a number of ${limit.words}`);
    }
    return [
      (record: PersonRecord) =>
        withChoice(record, 'limits', withLimit(record.limits, limit, value)),
    ];
  });
}

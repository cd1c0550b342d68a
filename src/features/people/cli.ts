// The command `nanobot people`: known people with their channels and settings, with or without a
// running gateway.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { CommandFailure, EXIT, type Terminal, textTable, withState } from '../../cli/terminal.ts';
import { ADMITTED_ROLES } from '../../kernel/access/admission.ts';
import { CONVERSATIONS, limitWords, type Person } from '../../kernel/access/person.ts';
import { APPROVAL_POLICIES } from '../../kernel/access/rights.ts';
import { PEOPLE_FOLDER } from '../../kernel/message/untrusted.ts';
import type { People } from '../../kernel/people/people.ts';
import { t } from '../../lib/texts.ts';
import { type PersonFlags, setPerson } from './person-settings.ts';

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
    .action((typed: string, flags: PersonFlags) => change(terminal, typed, flags));
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

async function change(terminal: Terminal, typed: string, flags: PersonFlags) {
  await withState(terminal, async ({ people }) =>
    setPerson(people, await theOne(people, typed), flags),
  );
  terminal.note(t`Changed.`);
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
  await forgetIndexed(terminal.home, terminal.clock, config.agents.defaults.workspace);
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

// The commands `/whoami`, `/people` and the owner's decisions about unknown senders, together with
// the commands of people about themselves.

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
import { type ApprovalPolicy, POLICY_WORDS } from '../../kernel/access/rights.ts';
import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
  EVERYBODY,
  OWNER_ONLY,
} from '../../kernel/commands/command-access.ts';
import { type InboundMessage, idsOf } from '../../kernel/message/message.ts';
import { PEOPLE_FOLDER, unknownSenderLine, verbatim } from '../../kernel/message/untrusted.ts';
import type { People } from '../../kernel/people/people.ts';
import type { Persons } from '../../kernel/people/persons.ts';
import { counted, type Subject } from '../../kernel/people/unknown-senders.ts';
import { t } from '../../lib/texts.ts';
import { type PersonCommandDeps, personCommands } from './person-commands.ts';

export const PEOPLE_COMMANDS = {
  whoami: { summary: t`show your ids, role and channel`, access: EVERYBODY, timing: 'immediate' },
  strangers: {
    summary: t`list unknown senders who wait for your decision`,
    access: OWNER_ONLY,
    timing: 'immediate',
  },
  allow: {
    summary: t`let an unknown sender in, or answer them once`,
    usage: '/allow [once] [channel] <id or code>',
    access: OWNER_ONLY,
    timing: 'immediate',
  },
  block: {
    summary: t`block a person`,
    usage: '/block [channel] <id or code>',
    access: OWNER_ONLY,
    timing: 'immediate',
  },
  drop: {
    summary: t`leave what an unknown sender wrote to you, unanswered`,
    usage: '/drop [channel] <id or code>',
    access: OWNER_ONLY,
    timing: 'immediate',
  },
} satisfies CommandTable;

export const KNOWN_PEOPLE_COMMANDS = {
  people: {
    summary: t`list people, limit what one may use, or show their notes`,
    usage: '/people [<person> [notes | <limit> <number> | <limit> auto]]',
    access: OWNER_ONLY,
    timing: 'immediate',
  },
} satisfies CommandTable;

type PeopleCommandDeps = PersonCommandDeps & {
  readonly people: People;
  /** The notes in a folder of the workspace. */
  notesOf(folder: string): Promise<string>;
  /** The approval policy for the sender there; undefined where the sender may run nothing. */
  approvalsFor(message: InboundMessage): Promise<ApprovalPolicy | undefined>;
};

export function peopleCommands(deps: PeopleCommandDeps): readonly Command[] {
  const { people } = deps;
  const deciding = commandsOf(
    { ...PEOPLE_COMMANDS, ...KNOWN_PEOPLE_COMMANDS },
    {
      whoami: (origin) => whoAmI(origin, deps),
      strangers: () => listUnknownSenders(people),
      allow: (_origin, argument) => allow(argument, people),
      block: (_origin, argument) => block(argument, people),
      drop: (_origin, argument) => drop(argument, people),
      people: (_origin, argument) => aboutPeople(wordsOf(argument), deps),
    },
  );
  return [...deciding, ...personCommands(deps)];
}

async function whoAmI(
  { message, role }: CommandOrigin,
  { approvalsFor }: PeopleCommandDeps,
): Promise<string> {
  const { sender, chat } = message;
  const policy = await approvalsFor(message);
  const ids = sender.kind === 'person' ? idsOf(sender) : [sender.source];
  return [
    t`- You: ${ids.map(verbatim).join(', ')}`,
    t`- Role: ${role ?? t`let in for one message`}`,
    t`- Channel: ${chat.channel}`,
    ...(policy === undefined ? [] : [t`- Approvals: ${policy}. ${POLICY_WORDS[policy]}`]),
  ].join('\n');
}

async function listUnknownSenders({ strangers }: Pick<People, 'strangers'>): Promise<string> {
  const waiting = await strangers.list();
  if (waiting.length === 0) return t`No unknown senders are waiting.`;
  return waiting.map((one) => `- ${unknownSenderLine(one)}`).join('\n');
}

async function allow(argument: string, people: People): Promise<string> {
  const [first = '', ...rest] = wordsOf(argument);
  const isOnce = first === 'once';
  const who = await theOne(isOnce ? rest : [first, ...rest], people);
  if (typeof who === 'string') return who;
  const { decisions } = people;
  const lost = lostText(who);
  if (isOnce) {
    if (who.waiting === undefined) return t`${nameOf(who)} has no message waiting.`;
    const answered = await decisions.allowOnce(who.waiting);
    return t`Answering ${nameOf(who)} this once (${counted(answered)}).${lost}`;
  }
  if (who.role === 'owner') return t`${nameOf(who)} is already an owner.`;
  const answered = await decisions.allow(who, who.role === 'guest' ? 'guest' : 'trusted');
  const now = answered === 0 ? '' : t`, starting with what they wrote (${counted(answered)})`;
  return t`${nameOf(who)} is let in: I answer them from now on${now}.${lost}`;
}

async function block(argument: string, people: People): Promise<string> {
  const who = await theOne(wordsOf(argument), people);
  if (typeof who === 'string') return who;
  if (who.role === 'owner') return t`An owner can be changed only on the machine: nanobot pair.`;
  await people.decisions.block(who);
  return t`${nameOf(who)} is blocked. ${verbatim(`/allow ${who.channel} ${who.userId}`)} undoes it.`;
}

async function drop(argument: string, people: People): Promise<string> {
  const who = await theOne(wordsOf(argument), people);
  if (typeof who === 'string') return who;
  if (who.waiting === undefined) return t`${nameOf(who)} has no message waiting.`;
  await people.decisions.drop(who.waiting);
  return t`I leave what ${nameOf(who)} wrote unanswered. They are neither let in nor blocked.`;
}

/** The person that is meant, or the answer where that is unclear. */
async function theOne(words: readonly string[], people: People): Promise<Subject | string> {
  const [channel, id] = words.length > 1 ? words : [undefined, words[0]];
  if (id === undefined || id === '') return t`Name a person. ${await listUnknownSenders(people)}`;
  const [who, ...others] = await people.decisions.find(id, channel);
  if (who === undefined) {
    return t`Nobody with the id ${verbatim(id)}; /strangers lists who is waiting.`;
  }
  if (others.length === 0) return who;
  const choices = [who, ...others].map((one) => verbatim(`${one.channel} ${one.userId}`));
  return t`Several people have this name. Which one: ${choices.join(', ')}.`;
}

const wordsOf = (argument: string) => argument.split(/\s+/).filter((word) => word !== '');

function nameOf({ name, userId, channel }: Subject): string {
  return name === ''
    ? t`${verbatim(userId)} on ${channel}`
    : t`${verbatim(name)} (${verbatim(userId)}) on ${channel}`;
}

function lostText({ waiting }: Subject): string {
  const lost = waiting?.lostMessages ?? 0;
  return lost === 0 ? '' : t` They wrote ${counted(lost)} more than I keep of an unknown sender.`;
}

const MAX_LISTED = 50;
const NOTES = 'notes';
const OWNERS_NOTES = t`Owners see their notes with /memory.`;
/** Resets a limit. */
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
    return t`${verbatim(typed)} is not a valid number of ${limit.words}. ${HINT}`;
  }
  return withOne(words.slice(0, -2).join(' '), persons, async ({ id }) => {
    const changed = await persons.change(id, (record) =>
      withChoice(record, 'limits', withLimit(record.limits, limit, value)),
    );
    return changed === undefined ? t`This person is no longer known.` : aboutOne(changed);
  });
}

const HINT =
  t`Usage: /people <person> <limit> <number>. The limit is one of ${PERSON_LIMITS.map(({ name }) => name).join(', ')}; ` +
  t`the number 0 means no limit, auto the configured limit.`;

async function withOne(
  typed: string,
  persons: Pick<Persons, 'find'>,
  run: (person: Person) => string | Promise<string>,
): Promise<string> {
  const [person, ...others] = await persons.find(typed);
  if (person === undefined) return t`No person is called ${verbatim(typed)}. ${HINT}`;
  if (others.length === 0) return run(person);
  const ids = [person, ...others].map(({ id }) => verbatim(id)).join(', ');
  return t`Several people have this name. Which one: ${ids}.`;
}

function aboutOne(person: Person): string {
  const limits = limitWords(person.limits) ?? t`as configured`;
  const approvals = person.approvals ?? t`as configured`;
  return t`- ${personLine(person)}\n- At most: ${limits}\n- Approvals: ${approvals}`;
}

function listPeople(people: readonly Person[]): string {
  if (people.length === 0) return t`No person has written yet.`;
  const shown = people.slice(0, MAX_LISTED).map((person) => `- ${personLine(person)}`);
  const more = people.length - shown.length;
  const rest = more === 0 ? [] : [t`- and ${more} more: ${verbatim('nanobot people list')}`];
  return [...shown, ...rest].join('\n');
}

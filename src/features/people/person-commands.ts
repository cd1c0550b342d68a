// The chat commands with which people see and change what is stored about them, link and unlink
// their channels, and move a conversation to another channel.

import { CHANNELS } from '../../channels/index.ts';
import { LINK_COMMAND } from '../../kernel/access/admission.ts';
import {
  CONVERSATIONS,
  channelIdsText,
  isSameChat,
  languageTag,
  languageWords,
  limitWords,
  type Person,
  personChannelOf,
  withChoice,
} from '../../kernel/access/person.ts';
import {
  type ApprovalPolicy,
  AUTOMATIC,
  type Medium,
  POLICY_WORDS,
} from '../../kernel/access/rights.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
  PERSONAL,
} from '../../kernel/commands/command-access.ts';
import { messageId, type PersonId } from '../../kernel/message/ids.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import { LINK_CODE_MINUTES, linkCommandOf, WRONG_CODE } from '../../kernel/people/links.ts';
import type { People } from '../../kernel/people/people.ts';
import type { PeopleRows } from '../../kernel/people/people-rows.ts';
import type { Persons } from '../../kernel/people/persons.ts';
import { t } from '../../lib/texts.ts';
import { isTimeZone } from '../../lib/time/zone-time.ts';

export const PERSON_COMMANDS = {
  me: {
    summary: t`show or change what I keep about you`,
    usage: '/me [channel <channel> | conversations shared | each]',
    access: PERSONAL,
    timing: 'immediate',
  },
  language: {
    summary: t`show or set the language of my answers`,
    usage: '/language [de | German | auto]',
    access: PERSONAL,
    timing: 'immediate',
  },
  timezone: {
    summary: t`show or set your time zone`,
    usage: '/timezone [Europe/Berlin | auto]',
    access: PERSONAL,
    timing: 'immediate',
  },
} satisfies CommandTable;

export const LINK_COMMANDS = {
  [LINK_COMMAND]: {
    summary: t`connect another channel to your account`,
    usage: '/link [code]',
    access: { ...PERSONAL, audited: true },
    timing: 'immediate',
  },
  unlink: {
    summary: t`disconnect one of your channels`,
    usage: '/unlink <channel>',
    access: { ...PERSONAL, audited: true },
    timing: 'immediate',
  },
} satisfies CommandTable;

export const CONTINUE_COMMANDS = {
  continue: {
    summary: t`continue this conversation on another channel`,
    usage: '/continue <channel>',
    access: PERSONAL,
    timing: 'immediate',
    isRepeatable: true,
  },
} satisfies CommandTable;

export type PersonCommandDeps = {
  readonly bus: Pick<MessageBus, 'send'>;
  readonly people: Pick<People, 'persons' | 'links' | 'routes'>;
  /** The medium of a channel. */
  mediumOf(channel: string): Medium;
};

export function personCommands(deps: PersonCommandDeps): readonly Command[] {
  const { persons } = deps.people;
  const own =
    (run: (person: Person, argument: string, origin: CommandOrigin) => Promise<string>) =>
    (origin: CommandOrigin, argument: string) =>
      withPerson(origin, persons, (person) => run(person, argument, origin));
  const issue = own((person, _argument, origin) => issueCode(person, origin, deps));
  return commandsOf(
    { ...PERSON_COMMANDS, ...LINK_COMMANDS, ...CONTINUE_COMMANDS },
    {
      me: own(async (person, argument, origin) => {
        const [setting, value = ''] = argument.toLowerCase().split(/\s+/);
        if (setting === '') return aboutMe(person);
        if (setting === 'conversations') return setConversations(person, origin, value, persons);
        // Earlier versions called it `door`.
        if (setting === 'channel' || setting === 'door')
          return setPreferredChannel(person, value, persons);
        return ME_HINT;
      }),
      language: own((person, argument) => setLanguage(person, argument, persons)),
      timezone: own((person, argument) => setTimeZone(person, argument, persons)),
      [LINK_COMMAND]: (origin, argument) =>
        argument === '' ? issue(origin, argument) : badCode(origin),
      unlink: own((person, argument) => unlink(person, argument, persons)),
      continue: own((person, argument, origin) => continueOn(person, argument, origin, deps)),
    },
  );
}

/**
 * Sets a person's approval policy; `auto`: as configured. Undefined where the person is unknown.
 */
export async function setApprovals(
  persons: Pick<Persons, 'change'>,
  id: PersonId,
  policy: ApprovalPolicy | typeof AUTOMATIC,
): Promise<string | undefined> {
  const chosen = policy === AUTOMATIC ? undefined : policy;
  const person = await persons.change(id, (record) => withChoice(record, 'approvals', chosen));
  return person && approvalsText(chosen);
}

function approvalsText(chosen: ApprovalPolicy | undefined): string {
  if (chosen === undefined) return t`Approvals: as configured.`;
  return t`Approvals: ${chosen}. ${POLICY_WORDS[chosen]}`;
}

/** The roles that have a policy, as people write them. */
export const POLICY_ROLES = { owners: 'owner', trusted: 'trusted' } as const;
const GROUP = /^([^:\s]+):\S+$/;

/** The row of a role, or of a group as `channel:id`; undefined for another text. */
export function policyRowOf(typed: string): string | undefined {
  const role = Object.entries(POLICY_ROLES).find(([name]) => name === typed.toLowerCase())?.[1];
  const channel = GROUP.exec(typed)?.[1];
  const isGroup = CHANNELS.some(({ name }) => name === channel);
  return role ?? (isGroup ? typed : undefined);
}

/** Sets the approval policy of a role or a group. Undefined for another text. */
export async function setGeneralApprovals(
  { policies }: Pick<PeopleRows, 'policies'>,
  typed: string,
  policy: ApprovalPolicy | typeof AUTOMATIC,
): Promise<string | undefined> {
  const row = policyRowOf(typed);
  if (row === undefined) return undefined;
  await policies.change(row, () => (policy === AUTOMATIC ? 'remove' : { approvals: policy }));
  return approvalsText(policy === AUTOMATIC ? undefined : policy);
}

/** Only in a private chat, and only where the sender is verified. */
export async function withPerson(
  { message }: CommandOrigin,
  persons: Pick<Persons, 'author' | 'get'>,
  run: (person: Person) => Promise<string>,
): Promise<string> {
  const { sender, addressing } = message;
  if (addressing !== 'direct') return ONLY_DIRECT;
  const isSure = sender.kind === 'person' && sender.verified !== 'unverified';
  const author = isSure ? await persons.author(message) : undefined;
  const person = author === undefined ? undefined : await persons.get(author.id);
  if (person === undefined) return t`I keep nothing about you.`;
  return run(person);
}

function aboutMe(person: Person): string {
  const limits = limitWords(person.limits);
  const { id, name, role, doors, timeZone, conversations, preferredDoor, quietHours } = person;
  return [
    t`- You: ${name === '' ? '' : `${verbatim(name)}, `}${verbatim(id)}`,
    t`- Role: ${role ?? t`let in for one message`}`,
    t`- Channels: ${doors.map(channelIdsText).join('; ')}`,
    ...(preferredDoor === undefined ? [] : [t`- Preferred channel: ${preferredDoor}`]),
    t`- Language: ${languageWords(person)}`,
    t`- Time zone: ${timeZone ?? t`that of my machine`}`,
    ...(quietHours === undefined ? [] : [t`- Quiet hours: ${quietHours}`]),
    ...(limits === undefined ? [] : [t`- At most: ${limits}`]),
    `- ${conversations === 'shared' ? SHARED_NOW : EACH_NOW}`,
  ].join('\n');
}

async function setLanguage(person: Person, argument: string, persons: Persons) {
  if (argument === '') return t`I answer you in ${languageWords(person)}. ${LANGUAGE_HINT}`;
  const language = argument === AUTOMATIC ? undefined : languageTag(argument);
  if (argument !== AUTOMATIC && language === undefined) {
    return t`Unknown language. Try: de, en, fr`;
  }
  await persons.change(person.id, (record) => withChoice(record, 'language', language));
  return t`I answer you in ${languageWords(language === undefined ? {} : { language })} from now on.`;
}

async function setTimeZone(person: Person, argument: string, persons: Persons) {
  if (argument === '') {
    return t`Your time zone is ${person.timeZone ?? t`that of my machine`}. ${ZONE_HINT}`;
  }
  if (argument !== AUTOMATIC && !isTimeZone(argument)) {
    return t`Unknown time zone. Try: Europe/Berlin, America/New_York`;
  }
  const timeZone = argument === AUTOMATIC ? undefined : argument;
  await persons.change(person.id, (record) => withChoice(record, 'timeZone', timeZone));
  return t`Your time zone is now ${timeZone ?? t`that of my machine`}.`;
}

async function setPreferredChannel(
  person: Person,
  value: string,
  persons: Persons,
): Promise<string> {
  const channel = personChannelOf(person, value);
  const channels = person.doors.map(({ channel }) => channel).join(', ');
  if (channel === undefined) return t`Usage: /me channel <channel>. Your channels: ${channels}.`;
  await persons.change(person.id, (record) => withChoice(record, 'preferredDoor', channel.channel));
  return t`If one of your channels is down, I try ${channel.channel} first.`;
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
    return t`${now} Change it with ${verbatim('/me conversations shared')} or ${verbatim('/me conversations each')}.`;
  }
  await persons.change(person.id, (record) => ({
    ...withChoice(record, 'session', wanted === 'shared' ? session : undefined),
    conversations: wanted,
  }));
  return wanted === 'shared' ? SHARED_NOW : EACH_NOW;
}

const LANGUAGE_HINT = t`Change it with \`/language de\`, \`/language German\` or \`/language auto\`.`;
const ZONE_HINT = t`Usage: /timezone \`Europe/Berlin\`, or /timezone auto.`;
const ME_HINT = t`Usage: /me, /me channel <channel>, or /me conversations shared | each.`;
const SHARED_NOW = t`All your channels share one conversation; I answer where you ask.`;
const EACH_NOW = t`Each of your channels has its own conversation.`;
const ONLY_DIRECT = t`This works only in a private chat with me.`;

async function issueCode(
  person: Person,
  { message: { chat } }: CommandOrigin,
  { people, mediumOf }: PersonCommandDeps,
): Promise<string> {
  if (mediumOf(chat.channel) === 'mail') return t`Send /link from a chat, not by mail.`;
  const code = await people.links.issue(person, chat);
  if (code === undefined) return t`You got several codes in the last hour. Try again later.`;
  return (
    t`Send ${verbatim(linkCommandOf(code))} to me on your other channel within ` +
    t`${LINK_CODE_MINUTES} minutes. It connects that account to yours, so keep it secret.`
  );
}

/** The intake takes valid codes, so only invalid ones arrive here. */
const badCode = async ({ message }: CommandOrigin) =>
  message.addressing === 'direct' ? WRONG_CODE : ONLY_DIRECT;

async function unlink(person: Person, argument: string, persons: Persons): Promise<string> {
  const channels = person.doors.map(({ channel }) => channel).join(', ');
  const channel = argument.trim().toLowerCase();
  if (channel === '') return t`Usage: /unlink <channel>. Your channels: ${channels}.`;
  switch (await persons.unlink(person.id, channel)) {
    case 'done':
      return t`${channel} is disconnected.`;
    case 'only':
      return t`This is your only channel.`;
    case 'needed':
      return t`You were let in on ${channel}; without it you would lose the other channels. Ask my owner to let you in on another one first.`;
    case 'unknown':
      return t`Your channels are ${channels}.`;
  }
}

/** Moves the conversation, with its context and the turn in progress. */
async function continueOn(
  person: Person,
  argument: string,
  { message, session }: CommandOrigin,
  { bus, people }: PersonCommandDeps,
): Promise<string> {
  const others = person.doors.filter(({ chat }) => !isSameChat(chat, message.chat));
  const names = others.filter(({ chat }) => chat !== undefined).map(({ channel }) => channel);
  const channel = personChannelOf({ doors: others }, argument.trim().toLowerCase());
  if (channel === undefined) {
    if (names.length === 0) return t`This is your only channel. Connect another with /link first.`;
    return t`Usage: /continue <channel>. Your channels: ${names.join(', ')}.`;
  }
  if (channel.chat === undefined)
    return t`Write to me on ${channel.channel} first, so that I know the chat.`;
  await people.routes.move(session, { to: channel.chat, at: message.receivedAt });
  await bus.send({
    id: messageId(`${message.id}/continued`),
    chat: channel.chat,
    markdown: t`Our conversation from ${message.chat.channel} continues here.`,
  });
  return t`The conversation continues on ${channel.channel}.`;
}

// Tool: looks into the owner's mailboxes. Nobody else is shown what stands there.

import { z } from 'zod';
import type { Channel, Inbox, InboxMail, InboxQuestion } from '../../channels/channel.ts';
import { configuredAccounts } from '../../channels/index.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { AccountName } from '../../kernel/message/account.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { createTimeText } from '../../lib/time/zone-time.ts';
import { readDescription, type Tool, type ToolContext } from '../../tools/tool.ts';
import { QUERY_NAMES } from '../../tools/toolbox.ts';

/** A mailbox that is open. */
export type OpenInbox = Inbox & {
  /** As it is called in the configuration. */
  readonly name: string;
};

export type CheckInboxDeps = {
  inboxes(): readonly OpenInbox[];
  /** IANA zone; empty = the machine's. */
  readonly timeZone: () => string;
};

const MAX_COUNT = 50;
const DEFAULT_COUNT = 10;
const MAX_QUERY_CHARS = 200;
const MAX_WORDS = 4;

const input = z.object({
  query: z
    .string()
    .trim()
    .max(MAX_QUERY_CHARS)
    .optional()
    .describe('Words that stand in the mail, its sender or its subject; left out: the newest.'),
  unread: z.boolean().default(false).describe('Only mails that nobody has read.'),
  count: z.int().min(1).max(MAX_COUNT).default(DEFAULT_COUNT).describe('At most so many.'),
  id: z.string().max(60).optional().describe('Read this one mail, by its id in an earlier list.'),
  mailbox: z.string().max(60).optional().describe('Only this one, where there are several.'),
});
type Input = z.infer<typeof input>;

export function createCheckInbox({ inboxes, timeZone }: CheckInboxDeps): Tool<Input> {
  const timeText = createTimeText();
  return {
    name: 'check_inbox',
    aliases: [
      'read_inbox',
      'check_email',
      'check_mail',
      'read_email',
      'list_emails',
      'search_email',
    ],
    parameterAliases: {
      query: QUERY_NAMES,
      unread: ['unread_only', 'unseen'],
      count: ['limit', 'max_results'],
      id: ['mail_id', 'message_id', 'uid'],
      mailbox: ['account', 'inbox'],
    },
    ...readDescription('check_inbox'),
    access: 'read',
    taints: true,
    input,
    isAvailable: () => inboxes().length > 0,
    unavailableBecause: () => 'no mailbox is set up: nanobot channels login email',
    describe: ({ query = '', id }) => (id === undefined ? query : `mail ${id}`),
    async run(asked, context) {
      mustBeOwners(context);
      const chosen = chosenOf(inboxes(), asked.mailbox);
      const zone = context.person.timeZone ?? timeZone();
      const when = (at: number) => timeText(at, zone);
      if (asked.id !== undefined) return readOne(asked.id, chosen, when, context);
      const question = questionOf(asked);
      const lists = await Promise.all(
        chosen.map(async (inbox) => {
          const mails = await inbox.find(question, context.signal);
          return mails.map((mail) => ({ mail, name: inbox.name }));
        }),
      );
      const newest = lists
        .flat()
        .sort((a, b) => b.mail.at - a.mail.at)
        .slice(0, asked.count);
      if (newest.length === 0) return 'Nothing was found.';
      return newest.map(({ mail, name }) => lineOf(mail, idOf(name, mail), when)).join('\n');
    },
  };
}

/** Also a turn of the owner's in a group has the group's notes, and answers to all there. */
function mustBeOwners({ person }: ToolContext): void {
  if (person.notes === '') return;
  throw new ToolError('permission', 'only the owner, between the two of you, is shown the mailbox');
}

function chosenOf(all: readonly OpenInbox[], name: string | undefined): readonly OpenInbox[] {
  const chosen = name === undefined ? all : all.filter((inbox) => inbox.name === name);
  if (chosen.length > 0) return chosen;
  const names = all.map((inbox) => inbox.name).join(', ');
  throw new ToolError('invalid_arguments', `there is no mailbox "${name}"; there are: ${names}`);
}

function questionOf({ query = '', unread, count }: Input): InboxQuestion {
  const words = query.split(/\s+/).filter((word) => word !== '');
  return { words: words.slice(0, MAX_WORDS), isUnreadOnly: unread, count };
}

const idOf = (name: string, mail: InboxMail) => `${name}/${mail.id}`;

function lineOf(mail: InboxMail, id: string, when: (at: number) => string): string {
  const mark = mail.isUnread ? 'unread, ' : '';
  const subject = mail.subject === '' ? '(no subject)' : mail.subject;
  return `- ${subject}\n  from ${mail.from}, ${mark}${when(mail.at)}\n  id: ${id}`;
}

async function readOne(
  asked: string,
  chosen: readonly OpenInbox[],
  when: (at: number) => string,
  { signal }: ToolContext,
): Promise<string> {
  const inbox = chosen.find(({ name }) => asked.startsWith(`${name}/`));
  if (inbox === undefined) {
    throw new ToolError('invalid_arguments', 'this is no id of a mail; list the mails first');
  }
  const mail = await inbox.read(asked.slice(inbox.name.length + 1), signal);
  const head = [`Subject: ${mail.subject}`, `From: ${mail.from}`, `Date: ${when(mail.at)}`];
  if (mail.attachments.length > 0) head.push(`Files: ${mail.attachments.join(', ')}`);
  return `${head.join('\n')}\n\n${mail.text === '' ? '(no text)' : mail.text}`;
}

// The mailboxes that can be looked into just now.

export function openInboxes(
  live: LiveConfig,
  channel: (name: AccountName) => Channel | undefined,
): readonly OpenInbox[] {
  return configuredAccounts(live.config.channels).flatMap(({ name, isEnabled }) => {
    const inbox = isEnabled ? channel(name)?.inbox : undefined;
    return inbox === undefined ? [] : [{ ...inbox, name }];
  });
}

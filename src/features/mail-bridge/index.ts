// Installs the mail bridge: takes in mails that the owner answers, and what the owner decides about
// them. Each is stored before it is acknowledged; bridge-service.ts shows and archives the mails.

import { z } from 'zod';
import { SIDE_MODEL } from '../../agent/side-model.ts';
import {
  ArchiveError,
  type Channel,
  type Inbox,
  type InboxMail,
  type InboxQuestion,
} from '../../channels/channel.ts';
import type { BridgeMode } from '../../channels/email/settings.ts';
import { configuredAccounts } from '../../channels/index.ts';
import type { SettledVerdict } from '../../kernel/access/admission.ts';
import { nameOfLanguage } from '../../kernel/access/person.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Kernel } from '../../kernel/feature.ts';
import type { Gated } from '../../kernel/intake/group-intake.ts';
import { policyOf } from '../../kernel/intake/routes.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { type AccountName, accountName, messageId } from '../../kernel/message/ids.ts';
import type { ChatRef, InboundMessage } from '../../kernel/message/message.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import {
  type Answered,
  type Asked,
  type Choice,
  payloadOf,
  type Question,
  type QuestionHandler,
} from '../../kernel/questions/question-rows.ts';
import { rememberedFor } from '../../lib/async.ts';
import { flag, rowShape, text } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { createTimeText } from '../../lib/time/zone-names.ts';
import { readDescription, type Tool, type ToolContext } from '../../tools/tool.ts';
import { QUERY_NAMES } from '../../tools/toolbox.ts';
import {
  answerQuestion,
  BridgeService,
  MAIL_SUBJECT,
  mailQuestion,
  textQuestion,
} from './bridge-service.ts';
import {
  addMail,
  BRIDGE_SCOPE,
  type BridgedMail,
  type BridgeRows,
  changeMail,
  createBridgeSummaries,
  type MailAnswer,
  type MailStage,
  openBridgeRows,
  type Summarise,
  summariseMail,
} from './bridge-summaries.ts';
import {
  bodyOf,
  dueSummary,
  isBridged,
  mailNoteOf,
  subjectOf,
  tomorrowMorning,
} from './rules/bridge.ts';

const HOUR_MS = 3_600_000;
const OVER = t`This mail was already handled.`;

type MailBridgeDeps = {
  readonly rows: BridgeRows;
  readonly bus: Pick<Kernel['bus'], 'send'>;
  readonly clock: Pick<Kernel['clock'], 'now'>;
  mode(channel: string): BridgeMode;
  /** IANA zone of the chat's person; empty = the machine's. */
  timeZoneIn(chat: ChatRef): Promise<string>;
  /** Wakes the bridge service. */
  changed(): void;
};

export function createMailBridge(deps: MailBridgeDeps) {
  const { rows, bus, clock, mode, timeZoneIn, changed } = deps;

  async function keep(message: InboundMessage) {
    const note = mailNoteOf(message);
    const { id, chat, sender, text, subject = '' } = message;
    const summary = dueSummary(bodyOf(text, subject), sender);
    const due = summary === undefined ? {} : { summary };
    const stage = { kind: 'waiting' } as const;
    await addMail(rows, { id, chat, note, ...due, round: 0, stage, at: clock.now() });
    changed();
  }

  /** Changes the stage of a shown mail; also true where a crash came after that step. */
  async function move(mail: BridgedMail, to: MailStage): Promise<boolean> {
    const isMoved = await changeMail(rows, mail.id, ({ stage, ...now }) =>
      stage.kind === 'shown' ? { ...now, stage: to } : undefined,
    );
    changed();
    return isMoved || mail.stage.kind === to.kind;
  }

  async function snooze(mail: BridgedMail, until: number, words: string) {
    return (await move(mail, { kind: 'snoozed', until })) ? words : OVER;
  }

  function write({ note }: BridgedMail, shown: Question, answer: MailAnswer = NO_ANSWER): Answered {
    const words =
      t`Write the answer to ${verbatim(note.address)} in the chat of this mail ` +
      t`within half an hour, as one message. I show it to you again before I send it.`;
    return { words, next: textQuestion(shown, answer) };
  }

  async function send({ id, chat, note }: BridgedMail, { text: markdown }: MailAnswer) {
    await bus.send({
      id: messageId(`bridge/${id}`),
      ...{ chat, markdown, replyTo: id, isDictated: true },
    });
    await changeMail(rows, id, () => 'done');
    return t`On its way to ${verbatim(note.address)}.`;
  }

  return {
    /** Undefined where the message is for the agent. */
    take(message: InboundMessage, verdict: SettledVerdict): Gated | undefined {
      if (!isBridged(mode(accountName(message.chat)), verdict)) return undefined;
      return {
        entry: { kind: 'record', message, gate: 'shown to the owner' },
        before: () => keep(message),
      };
    },
    /** Handles the owner's choices and words below a mail or an answer to it. */
    handler: {
      async answer(asked: Asked, { action, said }: Choice): Promise<Answered> {
        const mail = await rows.mails.get(asked.rest);
        const { chat } = asked;
        if (mail === undefined) return OVER;
        const answer = payloadOf(asked, ANSWER) ?? earlierOf(mail) ?? NO_ANSWER;
        switch (action) {
          case 'reply':
            return write(mail, mailQuestion(mail, chat));
          case 'archive': {
            const isMoved = await move(mail, { kind: 'archiving', chat });
            return isMoved ? t`Archiving ${subjectOf(mail.note)}.` : OVER;
          }
          case 'hour':
            return snooze(mail, clock.now() + HOUR_MS, t`I show it again in an hour.`);
          case 'tomorrow': {
            const until = tomorrowMorning(clock.now(), await timeZoneIn(chat));
            return snooze(mail, until, t`I show it again tomorrow at 9:00.`);
          }
          case 'text':
          case 'more': {
            const { text = '', hasFiles = false } = said ?? {};
            const whole =
              action === 'text'
                ? { text, hasFiles }
                : { text: `${answer.text}\n${text}`, hasFiles: answer.hasFiles || hasFiles };
            return { words: '', next: answerQuestion(mail, chat, whole) };
          }
          case 'send':
            return send(mail, answer);
          case 'edit':
            return write(mail, answerQuestion(mail, chat, answer), answer);
          case 'drop': {
            const isMoved = await move(mail, { kind: 'waiting' });
            return isMoved ? t`Nothing was sent. Here is the mail again.` : OVER;
          }
          default:
            return t`Unknown choice.`;
        }
      },
      async expired({ rest, payload }: Asked) {
        // A mail that was only shown is left alone; one that was to be answered comes again.
        await changeMail(rows, rest, (mail) => {
          if (mail.stage.kind !== 'shown') return undefined;
          const isAnswered = payload !== undefined || earlierOf(mail) !== undefined;
          return !isAnswered ? 'done' : { ...mail, stage: { kind: 'waiting' } };
        });
        changed();
      },
    } satisfies QuestionHandler,
  };
}

const earlierOf = ({ stage }: BridgedMail) => ('answer' in stage ? stage.answer : undefined);
const NO_ANSWER: MailAnswer = { text: '', hasFiles: false };
const ANSWER = rowShape<MailAnswer>({ text, hasFiles: flag });

export function install(kernel: Kernel): void {
  const { live, clock, log, bus, people, questions, channels, owners, add } = kernel;
  const ownerChat = owners.askChat;
  const state = kernel.store.scope(BRIDGE_SCOPE);
  const rows = openBridgeRows(kernel.rows);
  const changed = () => service.changed();
  const summarise = summariserOf(kernel);
  const summaries = createBridgeSummaries({ rows, clock, log, summarise, ownerChat, changed });
  const service = new BridgeService({
    ...{ rows, state, bus, clock, log, questions, ownerChat, summaries },
    async archive({ id, chat }, signal) {
      const archive = channels.get(accountName(chat))?.archive;
      if (archive === undefined) throw new ArchiveError('no_archive', 'the mailbox is not open');
      await archive(id, signal);
    },
  });
  const mode = (account: string) => policyOf(account, live.config).bridge ?? 'off';
  const bridge = createMailBridge({
    ...{ rows, bus, clock, mode, changed },
    timeZoneIn: async (chat) =>
      (await people.persons.inChat(chat))?.timeZone ?? live.config.sessions.timeZone,
  });
  add.answers(MAIL_SUBJECT, bridge.handler, 'letter');
  add.task({ name: 'mails', isOnce: true, run: (signal) => service.run(signal) });
  add.intake({
    name: 'mail bridge',
    decide: (message, verdict) => bridge.take(message, verdict),
  });
}

/** In the language of its reader, with configured secrets redacted. */
function summariserOf(kernel: Kernel): Summarise {
  const { live, people } = kernel;
  const side = kernel.use(SIDE_MODEL);
  return async ({ readIn, text, ...mail }, signal) => {
    const tag = (await people.persons.inChat(readIn))?.language;
    const language = tag === undefined ? undefined : nameOfLanguage(tag);
    return summariseMail(side, { ...mail, text: live.redact(text), language }, signal);
  };
}

// Tool: lists mails in the owner's mailboxes, for the owner only.

/** A connected mailbox. */
type OpenInbox = Inbox & {
  /** Its name in the configuration. */
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
    .describe('Words in the mail, its sender or its subject; default: the newest mails.'),
  unread: z.boolean().default(false).describe('Only unread mails.'),
  count: z.int().min(1).max(MAX_COUNT).default(DEFAULT_COUNT).describe('Maximum number of mails.'),
  id: z.string().max(60).optional().describe('Read one mail, by its id in an earlier list.'),
  mailbox: z.string().max(60).optional().describe('Only this mailbox, if there are several.'),
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
    unavailableBecause: () => t`no mailbox is connected: nanobot channels login email`,
    describe: ({ query = '', id }) => (id === undefined ? query : t`mail ${id}`),
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
      if (newest.length === 0) return t`Nothing was found.`;
      return newest.map(({ mail, name }) => lineOf(mail, idOf(name, mail), when)).join('\n');
    },
  };
}

/** A turn of the owner in a group has the group's notes, and everybody there sees the answer. */
function mustBeOwners({ person }: ToolContext): void {
  if (person.notes === '') return;
  throw new ToolError('permission', 'the mailbox is shown only to the owner in a private chat');
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
  const subject = mail.subject === '' ? t`(no subject)` : mail.subject;
  return t`- ${subject}\n  from ${mail.from}, ${mark}${when(mail.at)}\n  id: ${id}`;
}

async function readOne(
  asked: string,
  chosen: readonly OpenInbox[],
  when: (at: number) => string,
  { signal }: ToolContext,
): Promise<string> {
  const inbox = chosen.find(({ name }) => asked.startsWith(`${name}/`));
  if (inbox === undefined) {
    throw new ToolError('invalid_arguments', 'this is not the id of a mail; list the mails first');
  }
  const mail = await inbox.read(asked.slice(inbox.name.length + 1), signal);
  const head = [`Subject: ${mail.subject}`, `From: ${mail.from}`, `Date: ${when(mail.at)}`];
  if (mail.attachments.length > 0) head.push(`Files: ${mail.attachments.join(', ')}`);
  return `${head.join('\n')}\n\n${mail.text === '' ? t`(no text)` : mail.text}`;
}

// The mailboxes that are connected now.

export function openInboxes(
  live: LiveConfig,
  channel: (name: AccountName) => Channel | undefined,
): () => readonly OpenInbox[] {
  // Asked several times a turn: whether there is a tool for them.
  const accounts = rememberedFor(configuredAccounts);
  return () =>
    accounts(live.config.channels).flatMap(({ name, isEnabled }) => {
      const inbox = isEnabled ? channel(name)?.inbox : undefined;
      return inbox === undefined ? [] : [{ ...inbox, name }];
    });
}

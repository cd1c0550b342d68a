// The channels' part of the configuration: one schema per platform.

import { z } from 'zod';
import { REPLY_ALL } from '../../channels/email/rules/recipients.ts';
import { LARK_ACKNOWLEDGEMENTS } from '../../channels/lark/rules/reactions.ts';
import { TELEGRAM_REACTIONS } from '../../channels/telegram/rules/reactions.ts';
import { BRIDGE_MODES } from '../../features/mail-bridge/rules/bridge.ts';
import { STRANGER_POLICIES } from '../access/admission.ts';
import { accountName, accountSection, count, port, seconds, secret } from './settings-fields.ts';

const security = z
  .enum(['tls', 'starttls', 'none'])
  .describe('tls, starttls, or none (loopback hosts only).');

const allowFrom = z
  .array(z.string())
  .default([])
  .describe('Stable sender ids that may talk to the agent; empty = nobody, "*" = everybody.');

const groups = z
  .array(z.string())
  .default([])
  .describe('Stable ids of the groups the agent takes part in; empty = no group.');

const groupSettings = {
  groups,
  groupAllow: z
    .enum(['allowlisted', 'members'])
    .default('allowlisted')
    .describe('Who may speak to the agent in a listed group: who is on allowFrom, or any member.'),
  groupNames: z
    .array(z.string().max(64))
    .max(20)
    .default([])
    .describe('Names that call the agent besides a mention; * stands for any letters of a word.'),
};
const strangers = z
  .enum(STRANGER_POLICIES)
  .default('silent')
  .describe(
    'People who are not let in. silent: they get no answer and the owner is asked; pairing: they ' +
      'get a code for the owner; closed: refused; open: answered, as guests.',
  );

const telegram = z.strictObject({
  enabled: z.boolean().default(false),
  token: secret().default('').describe('From @BotFather.'),
  apiRoot: z.string().default('https://api.telegram.org'),
  allowFrom: allowFrom.describe('Numeric Telegram user ids; empty = nobody, "*" = everybody.'),
  strangers,
  streaming: z.boolean().default(true).describe('Show the answer while it is being written.'),
  quoteReplies: z
    .boolean()
    .default(false)
    .describe('Answers quote the question; in groups they always do.'),
  ackReaction: z
    .enum(['', ...TELEGRAM_REACTIONS])
    .default('')
    .describe('Emoji set on a message while it is worked on; empty: none.'),
  ...groupSettings,
  groups: groups.describe('Numeric ids of groups (-1001234567890); empty = no group.'),
  groupSenderChats: z
    .array(z.string())
    .default([])
    .describe('Ids of chats in whose name people may speak: a group for its hidden admins.'),
});

const emailOAuth2 = z.strictObject({
  tokenUrl: z
    .string()
    .default('')
    .describe('Where access tokens come from; empty: the provider’s own (Gmail, Outlook).'),
  clientId: z.string().default(''),
  clientSecret: secret().default('').describe('Empty for a public client.'),
  refreshToken: secret().default('').describe('Set: log in by OAuth2 instead of the password.'),
  scope: z.string().default('').describe('Empty: what the provider needs for IMAP and SMTP.'),
});

const answerCount = () => count(0, 5000);

/** The log of what was sent goes back 7 days and holds 5,000 mails. */
const emailLimits = z.strictObject({
  perHour: answerCount()
    .default(60)
    .describe('Answers to one proven person in an hour; what is above waits. 0: no limit.'),
  perDay: answerCount().default(300).describe('The same in 24 hours.'),
  threadPerHour: answerCount()
    .default(0)
    .describe('Answers in one thread in an hour; what is above waits. 0: no limit.'),
  spacingSecs: seconds(0, 3600)
    .default(0)
    .describe('Shortest time between two answers in a thread.'),
  mailboxPerHour: answerCount()
    .default(600)
    .describe('Mails of this mailbox in an hour; what is above waits. 0: no limit.'),
  mailboxPerDay: answerCount().default(3000).describe('The same in 24 hours.'),
  unprovenPerDay: answerCount()
    .default(1)
    .describe('Answers in 24 hours to an address that nothing proves; 0: no limit.'),
  unprovenDomainPerHour: answerCount()
    .default(30)
    .describe('Answers in an hour to all unproven addresses of a domain; what is above waits.'),
  withoutReply: answerCount()
    .default(200)
    .describe('Mails in a thread in 7 days without a new one from the person; 0: no limit.'),
  loopMails: count(0, 100)
    .default(5)
    .describe('Mails of a thread in a row, each soon after our answer, that end it; 0: never.'),
  loopSecs: seconds(1, 3600).default(120).describe('What is soon after our answer.'),
  bounces: count(0, 1000)
    .default(3)
    .describe('Reports in an hour that an address is not reached which pause it; 0: never.'),
  bouncePauseDays: count(1, 7).default(7).describe('How long it is paused.'),
  bouncePercent: count(0, 100)
    .default(5)
    .describe('Of the last 50 mails that may have come back before all are stopped; 0: any.'),
});

const mailboxFields = {
  enabled: z.boolean().default(false),
  imapHost: z.string().default(''),
  imapPort: port.default(993),
  imapSecurity: security.default('tls'),
  smtpHost: z.string().default(''),
  smtpPort: port.default(465),
  smtpSecurity: security.default('tls'),
  username: z.string().default(''),
  password: secret().default('').describe('An app password where the provider has them.'),
  oauth2: emailOAuth2.prefault({}),
  from: z.string().default('').describe('Our address; empty: the username.'),
  aliases: z.array(z.string()).default([]).describe('Further addresses of this mailbox.'),
  mailbox: z.string().default('INBOX'),
  allowFrom: allowFrom.describe('Sender addresses; empty = nobody, "*" = everybody.'),
  strangers,
  authservId: z
    .string()
    .default('')
    .describe('authserv-id of the receiving server whose Authentication-Results are believed.'),
  acceptUnverified: z
    .boolean()
    .default(false)
    .describe('Also answer mail whose sender nothing verifies. Anyone can forge a From line.'),
  bridge: z
    .enum(BRIDGE_MODES)
    .default('off')
    .describe(
      'Mails the owner answers from their chat instead of the agent: unlisted, of people who are ' +
        'not let in; all, of everybody but the owner.',
    ),
  replyAll: z
    .enum(REPLY_ALL)
    .default('never')
    .describe('trusted: a proven sender’s mail is answered to its recipients in allowFrom too.'),
  quoteOriginal: z
    .boolean()
    .default(true)
    .describe('Answers quote the mail they answer, up to 4,000 characters.'),
  limits: emailLimits.prefault({}),
  pollSecs: seconds(5, 120).default(60).describe('Reconcile by UID at least this often.'),
};

/** One mailbox, whether it is the first or a further one. */
export const mailboxSchema = z.strictObject(mailboxFields);

const email = z.strictObject({
  ...mailboxFields,
  accounts: z
    .record(accountName, accountSection(mailboxFields))
    .default({})
    .describe('Further mailboxes by a short name; what one leaves out is as in the first.'),
});

const whatsappPacing = z.strictObject({
  chatPerMinute: count(1, 10_000).default(20).describe('Messages to one chat.'),
  accountPerMinute: count(1, 10_000).default(40).describe('Messages to all chats together.'),
  minGapMs: count(0, 60_000).default(400).describe('Shortest pause between two messages.'),
  maxGapMs: count(0, 60_000).default(1600).describe('Longest pause drawn between two messages.'),
  firstContactsPerDay: count(0, 1000)
    .default(10)
    .describe('People who never wrote and may be written to in a day, with firstContact.'),
  identicalTexts: count(1, 1000)
    .default(4)
    .describe('Chats that get the same text within an hour before it is slowed down.'),
});

const whatsapp = z.strictObject({
  enabled: z.boolean().default(false),
  allowFrom: allowFrom.describe(
    'Phone numbers (+491511234567) or LIDs (1234@lid); empty = nobody, "*" = everybody.',
  ),
  ...groupSettings,
  groups: groups.describe('Group ids (120363...@g.us); empty = no group.'),
  strangers,
  phoneNumber: z
    .string()
    .default('')
    .describe('International number of the account: a code to type is offered beside the QR.'),
  socketUrl: z
    .string()
    .default('wss://web.whatsapp.com/ws/chat')
    .describe('wss:, or ws: on a loopback address.'),
  selfChat: z
    .boolean()
    .default(false)
    .describe('Answer what the account’s owner writes into the chat with themself.'),
  readReceipts: z.boolean().default(true).describe('Mark as read what the agent works on.'),
  streaming: z.boolean().default(false).describe('Show the answer while it is written, by edits.'),
  ackReaction: z
    .string()
    .default('')
    .describe(
      'An emoji set on the message while the agent works on it; each counts as two messages.',
    ),
  ownerPauseMins: count(0, 10_080)
    .default(30)
    .describe('Silence in a chat after its owner wrote there by hand; 0: none.'),
  maxAgeHours: count(1, 720)
    .default(72)
    .describe('Older messages, delivered late, are recorded but not answered.'),
  firstContact: z
    .boolean()
    .default(false)
    .describe('Let the agent write to people who never wrote to it.'),
  pacing: whatsappPacing.prefault({}),
});

const lark = z.strictObject({
  enabled: z.boolean().default(false),
  appId: z.string().default('').describe('cli_..., from the developer console.'),
  appSecret: secret().default('').describe('From the developer console.'),
  domain: z
    .string()
    .default('feishu')
    .describe('feishu, lark (outside China), or the address of a server of your own.'),
  allowFrom: allowFrom.describe('open_id (ou_...) or union_id (on_...); empty = nobody.'),
  strangers,
  streaming: z.boolean().default(true).describe('Show the answer while it is being written.'),
  quoteReplies: z
    .boolean()
    .default(false)
    .describe('Answers quote the question; in groups they always do.'),
  ackReaction: z
    .enum(['', ...LARK_ACKNOWLEDGEMENTS])
    .default('')
    .describe('Reaction set on a message while it is worked on; empty: none.'),
  ...groupSettings,
  groups: groups.describe('Chat ids of groups (oc_...); empty = no group.'),
});

export const channelsSchema = z
  .strictObject({
    telegram: telegram.prefault({}),
    email: email.prefault({}),
    whatsapp: whatsapp.prefault({}),
    lark: lark.prefault({}),
  })
  .prefault({});

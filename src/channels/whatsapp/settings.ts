// The WhatsApp settings: their schema, and what the schema cannot check.

import { z } from 'zod';
import {
  allowFrom,
  groupSettings,
  groups,
  strangeCallNames,
  strangers,
} from '../../kernel/config/channel-fields.ts';
import { count, flag, text } from '../../kernel/config/settings-fields.ts';
import { emojiOf } from '../../kernel/message/change.ts';
import type { ConfigProblem } from '../../kernel/message/errors.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';
import { isAllowEntry, parseJid, phoneDigits } from './rules/jid.ts';

const whatsappPacing = z.strictObject({
  chatPerMinute: count(1, 10_000, 20).describe('Messages to one chat.'),
  accountPerMinute: count(1, 10_000, 40).describe('Messages to all chats together.'),
  minGapMs: count(0, 60_000, 400).describe('Shortest pause between two messages.'),
  maxGapMs: count(0, 60_000, 1600).describe('Longest pause drawn between two messages.'),
  firstContactsPerDay: count(0, 1000, 10).describe(
    'People who never wrote and may be written to in a day, with firstContact.',
  ),
  identicalTexts: count(1, 1000, 4).describe(
    'Chats that get the same text within an hour before it is slowed down.',
  ),
});

export const whatsappSchema = z.strictObject({
  enabled: flag(false),
  allowFrom: allowFrom.describe(
    'Phone numbers (+491511234567) or LIDs (1234@lid); empty = nobody, "*" = everybody.',
  ),
  ...groupSettings,
  groups: groups.describe('Group ids (120363...@g.us); empty = no group.'),
  strangers,
  phoneNumber: text().describe(
    'International number of the account: a code to type is offered beside the QR.',
  ),
  socketUrl: text('wss://web.whatsapp.com/ws/chat').describe('wss:, or ws: on a loopback address.'),
  selfChat: flag(false).describe(
    'Answer what the account’s owner writes into the chat with themself.',
  ),
  readReceipts: flag(true).describe('Mark as read what the agent works on.'),
  streaming: flag(false).describe('Show the answer while it is written, by edits.'),
  ackReaction: text().describe(
    'An emoji set on the message while the agent works on it; each counts as two messages.',
  ),
  ownerPauseMins: count(0, 10_080, 30).describe(
    'Silence in a chat after its owner wrote there by hand; 0: none.',
  ),
  maxAgeHours: count(1, 720, 72).describe(
    'Older messages, delivered late, are recorded but not answered.',
  ),
  firstContact: flag(false).describe('Let the agent write to people who never wrote to it.'),
  pacing: whatsappPacing.prefault({}),
});
export type WhatsAppConfig = z.infer<typeof whatsappSchema>;

const SECTION = 'channels.whatsapp';

export function whatsappConflicts(whatsapp: WhatsAppConfig): readonly ConfigProblem[] {
  return [
    ...strangeEntries(whatsapp),
    ...strangeGroups(whatsapp),
    ...strangeCallNames(SECTION, whatsapp.groupNames),
    ...phoneNumber(whatsapp),
    ...socketUrl(whatsapp),
    ...gaps(whatsapp),
    ...noEmoji(whatsapp),
  ];
}

function strangeEntries({ allowFrom }: WhatsAppConfig): readonly ConfigProblem[] {
  return allowFrom.flatMap((entry, index) => {
    if (isAllowEntry(entry)) return [];
    const problem = `"${entry}" is neither a phone number with its country code nor a LID`;
    const remedy = 'Write it like +491511234567, or as "nanobot pair list" shows it.';
    return [{ path: `${SECTION}.allowFrom.${index}`, problem, remedy }];
  });
}

function strangeGroups({ groups }: WhatsAppConfig): readonly ConfigProblem[] {
  return groups.flatMap((id, index) => {
    if (parseJid(id).kind === 'group') return [];
    const problem = `"${id}" is no group id`;
    const remedy = 'Mention the agent in the group: it tells its owner the id.';
    return [{ path: `${SECTION}.groups.${index}`, problem, remedy }];
  });
}

function phoneNumber({ phoneNumber: written }: WhatsAppConfig): readonly ConfigProblem[] {
  if (written === '' || phoneDigits(written) === written) return [];
  const problem = `"${written}" is no international number`;
  const remedy = 'Write 8 to 15 digits with the country code and nothing else: 491511234567.';
  return [{ path: `${SECTION}.phoneNumber`, problem, remedy }];
}

/** Only TLS proves that the server is WhatsApp's: without it the address must be this machine's. */
function socketUrl({ socketUrl: written }: WhatsAppConfig): readonly ConfigProblem[] {
  const url = URL.canParse(written) ? new URL(written) : undefined;
  if (url?.protocol === 'wss:') return [];
  if (url?.protocol === 'ws:' && isLoopbackHost(url.hostname)) return [];
  const path = `${SECTION}.socketUrl`;
  const remedy = 'Leave it out, or write a wss: address.';
  if (url?.protocol !== 'ws:')
    return [{ path, problem: `"${written}" is no wss: address`, remedy }];
  const problem = `nothing would prove that ${url.hostname} is WhatsApp`;
  return [{ path, problem, remedy: `${remedy} ws: is for servers on this machine.` }];
}

function gaps({ pacing: { minGapMs, maxGapMs } }: WhatsAppConfig): readonly ConfigProblem[] {
  if (minGapMs <= maxGapMs) return [];
  const path = `${SECTION}.pacing.minGapMs`;
  const problem = `${minGapMs} is more than ${SECTION}.pacing.maxGapMs, which is ${maxGapMs}`;
  return [{ path, problem, remedy: `Make it at most ${maxGapMs}.` }];
}

function noEmoji({ ackReaction }: WhatsAppConfig): readonly ConfigProblem[] {
  if (ackReaction === '' || emojiOf(ackReaction) === ackReaction) return [];
  const problem = `"${ackReaction}" is not one emoji`;
  return [{ path: `${SECTION}.ackReaction`, problem, remedy: 'Write one, like 👀, or nothing.' }];
}

// The WhatsApp settings: their schema, and what the schema cannot check.

import { z } from 'zod';
import {
  allowFrom,
  groupSettings,
  groups,
  strangeCallNames,
  strangers,
} from '../../kernel/config/channel-fields.ts';
import { type Problems, strangeItems, unless } from '../../kernel/config/problems.ts';
import { count, flag, text } from '../../kernel/config/settings-fields.ts';
import { emojiOf } from '../../kernel/message/change.ts';
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

export function whatsappConflicts(whatsapp: WhatsAppConfig): Problems {
  const { allowFrom: allowed, groups: ids, phoneNumber, ackReaction, pacing } = whatsapp;
  const { minGapMs, maxGapMs } = pacing;
  return [
    ...strangeItems(
      `${SECTION}.allowFrom`,
      allowed,
      isAllowEntry,
      (entry) => `"${entry}" is neither a phone number with its country code nor a LID`,
      'Write it like +491511234567, or as "nanobot pair list" shows it.',
    ),
    ...strangeItems(
      `${SECTION}.groups`,
      ids,
      (id) => parseJid(id).kind === 'group',
      (id) => `"${id}" is no group id`,
      'Mention the agent in the group: it tells its owner the id.',
    ),
    ...strangeCallNames(SECTION, whatsapp.groupNames),
    ...unless(
      phoneNumber === '' || phoneDigits(phoneNumber) === phoneNumber,
      `${SECTION}.phoneNumber`,
      `"${phoneNumber}" is no international number`,
      'Write 8 to 15 digits with the country code and nothing else: 491511234567.',
    ),
    ...socketUrl(whatsapp),
    ...unless(
      minGapMs <= maxGapMs,
      `${SECTION}.pacing.minGapMs`,
      `${minGapMs} is more than ${SECTION}.pacing.maxGapMs, which is ${maxGapMs}`,
      `Make it at most ${maxGapMs}.`,
    ),
    ...unless(
      ackReaction === '' || emojiOf(ackReaction) === ackReaction,
      `${SECTION}.ackReaction`,
      `"${ackReaction}" is not one emoji`,
      'Write one, like 👀, or nothing.',
    ),
  ];
}

/** Only TLS proves that the server is WhatsApp's: without it the address must be this machine's. */
function socketUrl({ socketUrl: written }: WhatsAppConfig): Problems {
  const url = URL.parse(written);
  const path = `${SECTION}.socketUrl`;
  const remedy = 'Leave it out, or write a wss: address.';
  if (url?.protocol !== 'ws:') {
    return unless(url?.protocol === 'wss:', path, `"${written}" is no wss: address`, remedy);
  }
  const problem = `nothing would prove that ${url.hostname} is WhatsApp`;
  const local = `${remedy} ws: is for servers on this machine.`;
  return unless(isLoopbackHost(url.hostname), path, problem, local);
}

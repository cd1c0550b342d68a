// The WhatsApp settings: their schema, and checks beyond the schema.

import { z } from 'zod';
import {
  allowFrom,
  count,
  flag,
  groupSettings,
  groups,
  type Problems,
  proxy,
  strangeCallNames,
  strangeItems,
  strangers,
  text,
  unless,
} from '../../kernel/config/settings-fields.ts';
import { emojiOf } from '../../kernel/message/message.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';
import { t } from '../../lib/texts.ts';
import { isAllowEntry, parseJid, phoneDigits } from './rules/jid.ts';

const whatsappPacing = z.strictObject({
  chatPerMinute: count(1, 10_000, 20).describe('Most messages per minute to one chat.'),
  accountPerMinute: count(1, 10_000, 40).describe('Most messages per minute to all chats.'),
  minGapMs: count(0, 60_000, 400).describe('Shortest pause between two messages.'),
  maxGapMs: count(0, 60_000, 1600).describe('Longest random pause between two messages.'),
  firstContactsPerDay: count(0, 1000, 10).describe(
    'People per day to whom the agent may write first, with firstContact.',
  ),
  identicalTexts: count(1, 1000, 4).describe(
    'Chats that may get the same text within an hour before sending slows down.',
  ),
});

export const whatsappSchema = z.strictObject({
  enabled: flag(false).describe('Connect to WhatsApp.'),
  allowFrom: allowFrom.describe(
    t`Phone numbers (+491511234567) or LIDs (1234@lid) that may talk to the agent. Empty: nobody; "*": everybody.`,
  ),
  ...groupSettings,
  groups: groups.describe(
    t`Ids of groups (120363...@g.us) in which the agent answers. Empty: no group.`,
  ),
  strangers,
  phoneNumber: text().describe(
    'Number of the account in international format, to link it by a code instead of the QR code.',
  ),
  socketUrl: text('wss://web.whatsapp.com/ws/chat').describe(
    'Address of the WhatsApp server: wss:, or ws: on a loopback address.',
  ),
  proxy,
  selfChat: flag(false).describe('Answer in the account owner’s chat with themselves.'),
  readReceipts: flag(true).describe('Mark messages as read when the agent works on them.'),
  streaming: flag(false).describe('Show a live preview of the answer by editing the message.'),
  ackReaction: text().describe(
    'Emoji on a message while the agent works on it; counts as two messages.',
  ),
  ownerPauseMins: count(0, 10_080, 30).describe(
    'Minutes of silence in a chat after the account owner wrote there by hand. 0: none.',
  ),
  maxAgeHours: count(1, 720, 72).describe(
    'Messages delivered later than this are stored but not answered.',
  ),
  firstContact: flag(false).describe('Allow the agent to write to people who never wrote to it.'),
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
      (entry) => t`"${entry}" is not a phone number with country code or a LID`,
      t`Write it as +491511234567, or as "nanobot pair list" shows it.`,
    ),
    ...strangeItems(
      `${SECTION}.groups`,
      ids,
      (id) => parseJid(id).kind === 'group',
      (id) => t`"${id}" is not a group id`,
      t`Mention the agent in the group; the owner then gets the id.`,
    ),
    ...strangeCallNames(SECTION, whatsapp.groupNames),
    ...unless(
      phoneNumber === '' || phoneDigits(phoneNumber) === phoneNumber,
      `${SECTION}.phoneNumber`,
      t`"${phoneNumber}" is not an international phone number`,
      t`Use 8 to 15 digits with the country code, e.g. 491511234567.`,
    ),
    ...socketUrl(whatsapp),
    ...unless(
      minGapMs <= maxGapMs,
      `${SECTION}.pacing.minGapMs`,
      t`${minGapMs} is greater than ${SECTION}.pacing.maxGapMs (${maxGapMs})`,
      t`Use ${maxGapMs} or less.`,
    ),
    ...unless(
      ackReaction === '' || emojiOf(ackReaction) === ackReaction,
      `${SECTION}.ackReaction`,
      t`"${ackReaction}" is not one emoji`,
      t`Use one emoji, e.g. 👀, or leave it empty.`,
    ),
  ];
}

/** Only TLS proves that the server is WhatsApp's: without it, it must be on this machine. */
function socketUrl({ socketUrl: written }: WhatsAppConfig): Problems {
  const url = URL.parse(written);
  const path = `${SECTION}.socketUrl`;
  const remedy = t`Remove it, or use a wss: address.`;
  if (url?.protocol !== 'ws:') {
    return unless(url?.protocol === 'wss:', path, t`"${written}" is not a wss: address`, remedy);
  }
  const problem = t`without encryption nothing proves that ${url.hostname} is WhatsApp`;
  const local = t`${remedy} ws: is only for servers on this machine.`;
  return unless(isLoopbackHost(url.hostname), path, problem, local);
}

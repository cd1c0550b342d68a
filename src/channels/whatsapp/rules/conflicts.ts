// What may be wrong with the WhatsApp settings although each of them fits the schema.

import type { WhatsAppConfig } from '../../../kernel/config/config.ts';
import { strangeCallNames } from '../../../kernel/config/conflicts-groups.ts';
import { emojiOf } from '../../../kernel/message/change.ts';
import type { ConfigProblem } from '../../../kernel/message/errors.ts';
import { isLoopbackHost } from '../../../lib/net/address-rules.ts';
import { isAllowEntry, parseJid, phoneDigits } from './jid.ts';

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

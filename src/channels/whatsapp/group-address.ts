// Whether a message in a group is for the account: it names it, or answers what the agent sent. Pure.

import type { InboundMessage } from '../../core/message.ts';
import type { WhatsAppReading } from '../../core/whatsapp/content.ts';
import { isPerson, parseJid } from '../../core/whatsapp/jid.ts';
import { isOwnAddress, type LinkedAccount, ownIds } from './linked-account.ts';

/** `isQuoteOurs`: the agent sent the message of the quoted id; its author is checked here. */
export function groupAddressing(
  reading: WhatsAppReading | undefined,
  isQuoteOurs: boolean,
  own: LinkedAccount | undefined,
): InboundMessage['addressing'] {
  if (reading?.mentioned?.some((jid) => isOwnAddress(jid, own))) return 'mention';
  const author = parseJid(reading?.quoted?.authorJid);
  const isOurs = isQuoteOurs && isPerson(author) && isOwnAddress(author, own);
  return isOurs ? 'reply' : 'ambient';
}

/** The text without our own name in front, so that a command behind it is one. */
export function withoutOwnName(text: string, own: LinkedAccount | undefined): string {
  const trimmed = text.trimStart();
  const name = ownIds(own).find((id) => trimmed.startsWith(`@${id}`));
  if (name === undefined) return text;
  const rest = trimmed.slice(name.length + 1).replace(/^[\s,:]+/, '');
  return rest === '' ? text : rest;
}

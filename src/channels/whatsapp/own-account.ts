// Which addresses are the linked account's own.

import type { PersonJid } from '../../core/whatsapp-jid.ts';
import type { LinkedAccount } from './linked-account.ts';

export function isOwnAddress(address: PersonJid, own: LinkedAccount | undefined): boolean {
  if (own === undefined) return false;
  return address.user === (address.kind === 'number' ? own.number : own.lid);
}

/** The account's ids as people's are spelled. */
export function ownIds(own: LinkedAccount | undefined): readonly string[] {
  if (own === undefined) return [];
  return [`+${own.number}`, ...(own.lid === undefined ? [] : [`${own.lid}@lid`])];
}

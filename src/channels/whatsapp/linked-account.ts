// Whose account the credentials are linked to, and which addresses are its own.

import { type AuthenticationCreds, jidDecode } from '@whiskeysockets/baileys';
import { idOfPerson, type PersonJid } from './rules/jid.ts';

export type LinkedAccount = {
  /** International number, digits. */
  readonly number: string;
  /** Digits, without a device. */
  readonly lid?: string;
  readonly name?: string;
};

/** What Baileys calls an account whose name it does not know. */
const NO_NAME = '~';

/** Pairing was completed: asking for a code alone sets `me` already. */
export function isLinked(creds: AuthenticationCreds): boolean {
  return creds.me?.id !== undefined && creds.account !== undefined;
}

export function linkedAccountOf(creds: AuthenticationCreds): LinkedAccount | undefined {
  const number = isLinked(creds) ? jidDecode(creds.me?.id)?.user : undefined;
  if (number === undefined) return undefined;
  const lid = jidDecode(creds.me?.lid)?.user;
  const name = creds.me?.name;
  return {
    number,
    ...(lid === undefined ? {} : { lid }),
    ...(name === undefined || name === NO_NAME ? {} : { name }),
  };
}

export function isOwnAddress(address: PersonJid, own: LinkedAccount | undefined): boolean {
  if (own === undefined) return false;
  return address.user === (address.kind === 'number' ? own.number : own.lid);
}

/** The account's ids as people's are spelled. */
export function ownIds(own: LinkedAccount | undefined): readonly string[] {
  if (own === undefined) return [];
  const { number, lid } = own;
  const byLid = lid === undefined ? [] : [idOfPerson({ kind: 'lid', user: lid })];
  return [idOfPerson({ kind: 'number', user: number }), ...byLid];
}

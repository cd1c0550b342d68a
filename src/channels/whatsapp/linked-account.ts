// Whose account the credentials are linked to.

import { type AuthenticationCreds, jidDecode } from '@whiskeysockets/baileys';

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

// Nobody but the phones: enough to pair and log in.

import { Curve } from '@whiskeysockets/baileys';
import type { Account, People, Plumbing } from './seams.ts';
export function createPeople(_plumbing: Plumbing): People {
  const keys = new Map<string, ReturnType<typeof Curve.generateKeyPair>>();
  const known: Account[] = [];
  const no = () => Promise.reject(new Error('not there yet'));
  return {
    chats: (account) => {
      known.push(account);
      return { writesTo: no, writesToSelf: no, selfChat: [], ownSent: [] };
    },
    contact: no,
    group: no,
    directory: {
      find: (user) => {
        const a = known.find((x) => x.number === user || x.lid === user);
        return a && { number: a.number, lid: a.lid, devices: [0] };
      },
      keyBundle: async () => undefined,
    },
    handlers: [],
    paired: async () => undefined,
    online: async () => undefined,
    phoneIdentity: (account) => {
      const pair = keys.get(account.number) ?? Curve.generateKeyPair();
      keys.set(account.number, pair);
      return pair;
    },
    mediaCertificate: '',
    [Symbol.asyncDispose]: async () => undefined,
  };
}

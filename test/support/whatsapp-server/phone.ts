// The phone as a test holds it: linking, connections and the queue here; its chats are the people's.

import type { LinkedAccount } from './account.ts';
import type { Ending, Phone } from './contract.ts';
import type { Registrations } from './registrations.ts';
import type { PhoneChats } from './seams.ts';

const HELLO_MS = 5_000;

export function createPhone(
  account: LinkedAccount,
  registrations: Registrations,
  chats: PhoneChats,
): Phone {
  return {
    number: account.number,
    lid: account.lid,
    name: account.name,
    scan: (qr) => registrations.scan(account, qr),
    typesCode: (code) => registrations.typeCode(account, code, HELLO_MS),
    get linked() {
      return account.device !== undefined;
    },
    unlink: () => unlink(account),
    writesTo: (contact, text) => chats.writesTo(contact, text),
    writesToSelf: (text, options) => chats.writesToSelf(text, options),
    get selfChat() {
      return chats.selfChat;
    },
    get ownSent() {
      return chats.ownSent;
    },
    online: (timeoutMs) =>
      account
        .until(() => account.connection && true, 'the device is online', timeoutMs)
        .then(nothing),
    offline: (timeoutMs) =>
      account
        .until(
          () => account.connection === undefined || undefined,
          'the device is offline',
          timeoutMs,
        )
        .then(nothing),
    get isOnline() {
      return account.connection !== undefined;
    },
    end: (ending, phase = 'open') => end(account, registrations, ending, phase),
    refuseLogins: (ending) => {
      account.refusal = ending;
    },
    get queued() {
      return account.queue.length;
    },
    withholdsOfflineMarker: (withheld) => {
      account.withholdsMarker = withheld;
    },
    counts: account.counts,
    outbound: account.outbound,
  };
}

async function unlink(account: LinkedAccount): Promise<void> {
  account.unlink();
  for (const socket of account.sockets) await socket.end({ kind: 'stream_error', code: 401 });
}

async function end(
  account: LinkedAccount,
  registrations: Registrations,
  ending: Ending,
  phase: 'open' | 'opening',
): Promise<void> {
  if (phase === 'opening') {
    account.refusalOnce = ending;
    return;
  }
  const socket = account.sockets.at(-1) ?? registrations.askingFor(account)?.connection;
  if (socket === undefined) throw new Error('there is no connection to end');
  await socket.end(ending);
}

function nothing(): void {}

// Baileys' Signal sessions, made safe: every call is one unit of work of the vault, outside Baileys'
// own transactions, and a decrypted message is stored in the same transaction as the ratchet that
// can never decrypt it again. Baileys sends the delivery receipt only after such a call returned.

import {
  DEFAULT_CONNECTION_CONFIG,
  isHostedPnUser,
  isPnUser,
  type SignalRepositoryWithLIDStore,
  type SocketConfig,
} from '@whiskeysockets/baileys';
import { BACKOFF, ChannelError } from '../../kernel/message/errors.ts';
import type { Logger } from '../../lib/logger.ts';
import { aborted, type Clock } from '../../lib/time/clock.ts';
import type { Ledger } from './ledger.ts';
import { createLidLookup } from './people.ts';
import { isNotSaved } from './rows.ts';
import type { SignalUnits } from './signal-keys.ts';
import type { Vault } from './vault.ts';

export type SessionRepositoryDeps = {
  readonly vault: Vault;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly log: Logger;
};

export function createSessionRepository(
  deps: SessionRepositoryDeps,
): SocketConfig['makeSignalRepository'] {
  return ({ creds }, logger, ask) => {
    const connection = new AbortController();
    const units = untilEnd(deps.vault.signalUnits(creds), connection.signal);
    const { log, clock } = deps;
    const lookup = createLidLookup({ ask, clock, log });
    const { makeSignalRepository } = DEFAULT_CONNECTION_CONFIG;
    const inner = makeSignalRepository({ creds, keys: units.keys }, logger, lookup);
    return {
      ...inner,
      ...serialised(inner, units),
      ...receiving(inner, units, { ...deps, signal: connection.signal }),
      close() {
        const problem = 'This connection to WhatsApp has ended.';
        connection.abort(new ChannelError('whatsapp_ended', problem, { remedy: BACKOFF }));
        inner.close?.();
      },
    };
  };
}

/** Calls on the way of an inbound message. */
type Receiving = Pick<
  SignalRepositoryWithLIDStore,
  | 'decryptMessage'
  | 'decryptGroupMessage'
  | 'processSenderKeyDistributionMessage'
  | 'migrateSession'
>;
type PassedOn = 'jidToSignalProtocolAddress' | 'lidMapping' | 'close';

/** What Baileys still does for a connection that has ended can reach nobody: no key is used up for it. */
function untilEnd({ keys, run }: SignalUnits, signal: AbortSignal): SignalUnits {
  return {
    keys,
    run: (task) =>
      run(async (unit) => {
        signal.throwIfAborted();
        return task(unit);
      }),
  };
}

/** Everything that reads or writes a session, one at a time. */
function serialised(
  inner: SignalRepositoryWithLIDStore,
  units: SignalUnits,
): Omit<SignalRepositoryWithLIDStore, keyof Receiving | PassedOn> {
  const alone =
    <A extends unknown[], T>(call: (...args: A) => Promise<T>) =>
    (...args: A) =>
      units.run(() => call(...args));
  /** The same for a call that looks the person up. */
  const addressed =
    <A extends unknown[], T>(jidOf: (...args: A) => string, call: (...args: A) => Promise<T>) =>
    (...args: A) =>
      lookedUp(inner, jidOf(...args), () => units.run(() => call(...args)));
  return {
    encryptMessage: addressed(({ jid }) => jid, inner.encryptMessage),
    injectE2ESession: addressed(({ jid }) => jid, inner.injectE2ESession),
    validateSession: addressed((jid) => jid, inner.validateSession),
    getSessionInfo: addressed((jid) => jid, inner.getSessionInfo),
    encryptGroupMessage: alone(inner.encryptGroupMessage),
    getSenderKeyDistributionMessage: alone(inner.getSenderKeyDistributionMessage),
    hasSenderKey: alone(inner.hasSenderKey),
    deleteSession: alone(inner.deleteSession),
  };
}

function receiving(
  inner: SignalRepositoryWithLIDStore,
  units: SignalUnits,
  { ledger, log, signal }: SessionRepositoryDeps & { readonly signal: AbortSignal },
): Receiving {
  /**
   * Baileys acknowledges a message it could not handle, and the server forgets it. One that could not
   * be stored stays unanswered instead: the server sends it again on the next connection.
   */
  async function unanswered<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (!isNotSaved(error)) throw error;
      log.error('a WhatsApp message could not be stored', { error });
      await aborted(signal);
      throw error;
    }
  }

  async function decrypt(ciphertext: Uint8Array, call: () => Promise<Uint8Array>) {
    try {
      const { plaintext, isStored } = await units.run(async (unit) => {
        const plaintext = await call();
        const rows = ledger.rowsFor(ciphertext, plaintext);
        for (const { key, value } of rows) unit.put(key, value);
        return { plaintext, isStored: rows.length > 0 };
      });
      ledger.settled(ciphertext);
      if (isStored) ledger.stored();
      return plaintext;
    } catch (error) {
      if (!isNotSaved(error)) ledger.settled(ciphertext);
      throw error;
    }
  }

  return {
    decryptMessage: (message) =>
      unanswered(() =>
        lookedUp(inner, message.jid, () =>
          decrypt(message.ciphertext, () => inner.decryptMessage(message)),
        ),
      ),
    decryptGroupMessage: (message) =>
      unanswered(() => decrypt(message.msg, () => inner.decryptGroupMessage(message))),
    processSenderKeyDistributionMessage: (message) =>
      unanswered(() => units.run(() => inner.processSenderKeyDistributionMessage(message))),
    migrateSession: (from, to) => unanswered(() => units.run(() => inner.migrateSession(from, to))),
  };
}

/** Fills the mapping's memory before the lock is taken, so that nobody waits for the network in it. */
async function lookedUp<T>(
  { lidMapping }: SignalRepositoryWithLIDStore,
  jid: string,
  call: () => Promise<T>,
): Promise<T> {
  if (isPnUser(jid) || isHostedPnUser(jid)) await lidMapping.getLIDForPN(jid);
  return call();
}

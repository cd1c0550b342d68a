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
import { aborted } from '../../lib/time/clock.ts';
import type { ChannelHost } from '../channel.ts';
import type { Ledger } from './ledger.ts';
import { createLidLookup } from './people.ts';
import { isNotSaved, type Unit } from './rows.ts';
import type { Vault } from './vault.ts';

type SessionRepositoryDeps = Pick<ChannelHost, 'clock' | 'log'> & {
  readonly vault: Vault;
  readonly ledger: Ledger;
};

export function createSessionRepository(
  deps: SessionRepositoryDeps,
): SocketConfig['makeSignalRepository'] {
  const { vault, clock, log } = deps;
  return ({ creds }, logger, ask) => {
    const connection = new AbortController();
    const { signal } = connection;
    const units = vault.signalUnits(creds);
    const lookup = createLidLookup(ask, clock, log);
    const { makeSignalRepository } = DEFAULT_CONNECTION_CONFIG;
    const inner = makeSignalRepository({ creds, keys: units.keys }, logger, lookup);
    /** What Baileys still does for a connection that has ended can reach nobody: no key is used up for it. */
    const alone: Alone = (task) =>
      units.run(async (unit) => {
        signal.throwIfAborted();
        return task(unit);
      });
    return {
      ...inner,
      ...serialised(inner, alone),
      ...receiving(inner, alone, { ...deps, signal }),
      close() {
        const problem = 'This connection to WhatsApp has ended.';
        connection.abort(new ChannelError('whatsapp_ended', problem, { remedy: BACKOFF }));
        inner.close?.();
      },
    };
  };
}

/** Runs as one unit of work. */
type Alone = <T>(task: (unit: Unit) => Promise<T>) => Promise<T>;

/** Calls on the way of an inbound message. */
type Receiving = Pick<
  SignalRepositoryWithLIDStore,
  | 'decryptMessage'
  | 'decryptGroupMessage'
  | 'processSenderKeyDistributionMessage'
  | 'migrateSession'
>;
type PassedOn = 'jidToSignalProtocolAddress' | 'lidMapping' | 'close';

/** Every other call that reads or writes a session. */
function serialised(
  inner: SignalRepositoryWithLIDStore,
  alone: Alone,
): Omit<SignalRepositoryWithLIDStore, keyof Receiving | PassedOn> {
  const addressed = <T>(jid: string, call: () => Promise<T>) =>
    lookedUp(inner, jid, () => alone(call));
  return {
    encryptMessage: (given) => addressed(given.jid, () => inner.encryptMessage(given)),
    injectE2ESession: (given) => addressed(given.jid, () => inner.injectE2ESession(given)),
    validateSession: (jid) => addressed(jid, () => inner.validateSession(jid)),
    getSessionInfo: (jid) => addressed(jid, () => inner.getSessionInfo(jid)),
    encryptGroupMessage: (given) => alone(() => inner.encryptGroupMessage(given)),
    getSenderKeyDistributionMessage: (given) =>
      alone(() => inner.getSenderKeyDistributionMessage(given)),
    hasSenderKey: (given) => alone(() => inner.hasSenderKey(given)),
    deleteSession: (jids) => alone(() => inner.deleteSession(jids)),
  };
}

function receiving(
  inner: SignalRepositoryWithLIDStore,
  alone: Alone,
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
      const { plaintext, isStored } = await alone(async (unit) => {
        const plaintext = await call();
        const rows = ledger.rowsFor(ciphertext, plaintext);
        unit.putAll(rows);
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
      unanswered(() => alone(() => inner.processSenderKeyDistributionMessage(message))),
    migrateSession: (from, to) => unanswered(() => alone(() => inner.migrateSession(from, to))),
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

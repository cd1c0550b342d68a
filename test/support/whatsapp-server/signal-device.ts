// A complete Signal endpoint in memory, by the library's own session repository: what stands behind
// every person of the WhatsApp server. Whom it talks to and what about is left to its owner.

import { AsyncLocalStorage } from 'node:async_hooks';
import {
  Curve,
  DEFAULT_CONNECTION_CONFIG,
  encodeWAMessage,
  generateRegistrationId,
  generateSignalPubKey,
  type KeyPair,
  proto,
  type SignalDataSet,
  type SignalDataTypeMap,
  type SignalKeyStoreWithTransaction,
  type SignedKeyPair,
  unpadRandomMax16,
} from '@whiskeysockets/baileys';
import { withoutFailedTries } from '../../../src/channels/whatsapp/signal-keys.ts';
import type { KeyBundle } from './seams.ts';
import { createTurns } from './turns.ts';

/** A ciphertext between two devices; `pkmsg` opens a session as well. */
export type Sealed = { readonly type: 'pkmsg' | 'msg'; readonly ciphertext: Uint8Array };

export type GroupSealed = {
  readonly ciphertext: Uint8Array;
  /** What a member needs before it can read this sender's messages. */
  readonly senderKey: Uint8Array;
};

/** A device as it stood at an earlier server. */
export type SavedSignalDevice = {
  readonly registrationId: number;
  readonly identity: KeyPair;
  readonly signedPreKey: SignedKeyPair;
  /** By `type/id`, as the library keeps them. */
  readonly rows: readonly (readonly [string, unknown])[];
};

const SIGNED_PRE_KEY_ID = 1;
const SILENT_LOGGER = {
  level: 'silent',
  child: () => SILENT_LOGGER,
  trace: () => undefined,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** Addresses are jids with a device; all calls of one device run one after another. */
export class SignalDevice {
  readonly registrationId: number;
  readonly identity: KeyPair;
  readonly #signedPreKey: SavedSignalDevice['signedPreKey'];
  readonly #keys: SignalKeyStoreWithTransaction;
  readonly #turns = createTurns();
  readonly #repository: ReturnType<typeof DEFAULT_CONNECTION_CONFIG.makeSignalRepository>;
  #preKeys = 0;

  constructor(saved?: SavedSignalDevice) {
    silenceConsoleWhileWorking();
    this.registrationId = saved?.registrationId ?? generateRegistrationId();
    this.identity = saved?.identity ?? Curve.generateKeyPair();
    this.#signedPreKey = saved?.signedPreKey ?? lazySignedPreKey(this.identity);
    this.#keys = createKeyStore(saved?.rows);
    const creds = {
      signedIdentityKey: this.identity,
      signedPreKey: this.#signedPreKey,
      registrationId: this.registrationId,
    };
    this.#repository = DEFAULT_CONNECTION_CONFIG.makeSignalRepository(
      { creds, keys: this.#keys },
      SILENT_LOGGER,
      async () => [],
    );
  }

  /** A pre-key is made for each bundle and kept until it is used. */
  bundle(): KeyBundle {
    this.#preKeys += 1;
    const pair = Curve.generateKeyPair();
    void this.#keys.set({ 'pre-key': { [this.#preKeys]: pair } });
    const { keyId, keyPair, signature } = this.#signedPreKey;
    return {
      registrationId: this.registrationId,
      identityKey: this.identity.public,
      signedPreKey: { id: keyId, key: keyPair.public, signature },
      preKey: { id: this.#preKeys, key: pair.public },
    };
  }

  hasSession(address: string): Promise<boolean> {
    return this.#alone(async () => (await this.#repository.validateSession(address)).exists);
  }

  /** A fresh session takes the place of the one in use; what comes under the old one is still read. */
  startSession(jid: string, bundle: KeyBundle): Promise<void> {
    const session = toSession(bundle);
    return this.#alone(() => this.#repository.injectE2ESession({ jid, session }));
  }

  forgetSession(address: string): Promise<void> {
    return this.#alone(() => this.#repository.deleteSession([address]));
  }

  encrypt(jid: string, message: proto.IMessage): Promise<Sealed> {
    const data = encodeWAMessage(message);
    return this.#alone(() => this.#repository.encryptMessage({ jid, data }));
  }

  /** @throws where no session of this device fits */
  decrypt(jid: string, sealed: Sealed): Promise<proto.Message> {
    const { type } = sealed;
    const ciphertext = Buffer.from(sealed.ciphertext);
    return this.#alone(async () =>
      decode(await this.#repository.decryptMessage({ jid, type, ciphertext })),
    );
  }

  encryptForGroup(group: string, meId: string, message: proto.IMessage): Promise<GroupSealed> {
    const data = encodeWAMessage(message);
    return this.#alone(async () => {
      const sealed = await this.#repository.encryptGroupMessage({ group, meId, data });
      return { ciphertext: sealed.ciphertext, senderKey: sealed.senderKeyDistributionMessage };
    });
  }

  learnSenderKey(
    authorJid: string,
    item: proto.Message.ISenderKeyDistributionMessage,
  ): Promise<void> {
    return this.#alone(() =>
      this.#repository.processSenderKeyDistributionMessage({ authorJid, item }),
    );
  }

  /** @throws without the author's sender key */
  decryptFromGroup(
    group: string,
    authorJid: string,
    ciphertext: Uint8Array,
  ): Promise<proto.Message> {
    const msg = Buffer.from(ciphertext);
    return this.#alone(async () =>
      decode(await this.#repository.decryptGroupMessage({ group, authorJid, msg })),
    );
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns(() => atWork.run(true, work));
  }
}

const decode = (padded: Uint8Array) => proto.Message.decode(unpadRandomMax16(padded));

export const toSession = (bundle: KeyBundle) => ({
  registrationId: bundle.registrationId,
  identityKey: generateSignalPubKey(bundle.identityKey),
  signedPreKey: {
    keyId: bundle.signedPreKey.id,
    publicKey: generateSignalPubKey(bundle.signedPreKey.key),
    signature: bundle.signedPreKey.signature,
  },
  ...(bundle.preKey === undefined
    ? {}
    : {
        preKey: {
          keyId: bundle.preKey.id,
          publicKey: generateSignalPubKey(bundle.preKey.key),
        },
      }),
});

/** Signing costs milliseconds, and most persons are never asked for a bundle. */
function lazySignedPreKey(identity: KeyPair) {
  const keyPair = Curve.generateKeyPair();
  let signature: Uint8Array | undefined;
  return {
    keyId: SIGNED_PRE_KEY_ID,
    keyPair,
    get signature() {
      signature ??= Curve.sign(identity.private, generateSignalPubKey(keyPair.public));
      return signature;
    },
  };
}

/** Calls come one at a time, so a transaction has nothing to keep apart. */
function createKeyStore(saved: SavedSignalDevice['rows'] = []): SignalKeyStoreWithTransaction {
  const rows = new Map<string, unknown>(saved);
  return {
    get<T extends keyof SignalDataTypeMap>(type: T, ids: string[]) {
      const found: { [id: string]: SignalDataTypeMap[T] } = {};
      for (const id of ids) {
        const value = rows.get(`${type}/${id}`);
        if (value !== undefined) found[id] = value as SignalDataTypeMap[T];
      }
      return found;
    },
    set(data: SignalDataSet) {
      for (const [type, values] of Object.entries(data)) {
        for (const [id, value] of Object.entries(values)) {
          const row = `${type}/${id}`;
          // A phone tries messages on copies of its sessions; the library does not.
          const kept =
            type === 'session' ? withoutFailedTries(rows.get(row) as Uint8Array, value) : value;
          if (kept === null) rows.delete(row);
          else rows.set(row, kept);
        }
      }
    },
    isInTransaction: () => false,
    transaction: (work) => work(),
  };
}

const atWork = new AsyncLocalStorage<boolean>();
const SILENCED = Symbol.for('nanobot.test.whatsapp-server.silenced-console');

/** libsignal prints whole sessions; what is printed outside a device's work still comes out. */
function silenceConsoleWhileWorking(): void {
  for (const level of ['info', 'warn', 'error'] as const) {
    const print = console[level];
    if (SILENCED in print) continue;
    const quiet = (...args: unknown[]) => {
      if (atWork.getStore() !== true) print.apply(console, args);
    };
    console[level] = Object.assign(quiet, { [SILENCED]: true });
  }
}

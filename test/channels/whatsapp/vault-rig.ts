// A vault on the real embedded store with what Baileys does around it: pairing, key upload, and the
// stanzas whose messages are decrypted. The person on the other side is a Signal device in memory.

import { join } from 'node:path';
import {
  type AuthenticationCreds,
  addTransactionCapability,
  type BinaryNode,
  encodeWAMessage,
  getNextPreKeys,
  proto,
  type SignalKeyStoreWithTransaction,
  type SignalRepositoryWithLIDStore,
  type SocketConfig,
  unpadRandomMax16,
} from '@whiskeysockets/baileys';
import { type Ledger, openLedger } from '../../../src/channels/whatsapp/ledger.ts';
import { createBaileysLogger } from '../../../src/channels/whatsapp/transport.ts';
import { openVault, type Vault } from '../../../src/channels/whatsapp/vault.ts';
import { createSessionRepository } from '../../../src/channels/whatsapp/whatsapp.ts';
import { openEmbeddedStore } from '../../../src/kernel/bus/store/embedded.ts';
import type { EmbeddedStore, KeyValueStore } from '../../../src/kernel/bus/store/store.ts';
import { type Logger, silentLogger } from '../../../src/lib/logger.ts';
import { type Clock, systemClock } from '../../../src/lib/time/clock.ts';
import type { KeyBundle } from '../../support/whatsapp-server/seams.ts';
import type { Sealed, SignalDevice } from '../../support/whatsapp-server/signal-device.ts';

export const OWN = { id: '15550001:4@s.whatsapp.net', lid: '9000001:4@lid', name: 'Ada' };
export const SCOPE = 'channel:whatsapp:default';

export type RigOptions = {
  readonly folder?: string;
  readonly clock?: Clock;
  readonly log?: Logger;
  /** Stands between the vault and the store. */
  readonly wrap?: (state: KeyValueStore) => KeyValueStore;
};

export type Rig = AsyncDisposable & {
  readonly folder: string;
  readonly store: EmbeddedStore;
  /** The rows as they are on disk, past what `wrap` put in between. */
  readonly rows: KeyValueStore;
  readonly vault: Vault;
  readonly ledger: Ledger;
  readonly makeRepository: SocketConfig['makeSignalRepository'];
  /** What `makeWASocket` would make of the vault's keys and repository. */
  connect(ask?: Parameters<SocketConfig['makeSignalRepository']>[2]): Connection;
};

export type Connection = {
  readonly keys: SignalKeyStoreWithTransaction;
  readonly repository: SignalRepositoryWithLIDStore;
};

export async function openRig(folder: string, options: RigOptions = {}): Promise<Rig> {
  const { clock = systemClock, log = silentLogger, wrap = (state) => state } = options;
  const store = await openEmbeddedStore({ path: join(folder, 'state.db'), clock, log });
  const rows = store.scope(SCOPE);
  const state = wrap(rows);
  const vault = await openVault({ state, clock, log });
  const own = () => vault.auth.creds.me;
  const ledger = await openLedger({ state, clock, log, own });
  const makeRepository = createSessionRepository({ vault, ledger, clock, log });
  const logger = createBaileysLogger({ log, clock });
  return {
    folder,
    store,
    rows,
    vault,
    ledger,
    makeRepository,
    connect(ask) {
      const { creds } = vault.auth;
      const retries = { maxCommitRetries: 1, delayBetweenTriesMs: 1 };
      const keys = addTransactionCapability(vault.auth.keys, logger, retries);
      return { keys, repository: makeRepository({ creds, keys }, logger, ask) };
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

/** What a completed pairing leaves in the credentials. */
export function markLinked(creds: AuthenticationCreds): void {
  creds.me = { ...OWN };
  creds.account = proto.ADVSignedDeviceIdentity.create({
    details: Buffer.from('details'),
    accountSignatureKey: Buffer.alloc(32, 7),
    accountSignature: Buffer.alloc(64, 8),
    deviceSignature: Buffer.alloc(64, 9),
  });
}

/** As Baileys does before it uploads keys: stored and counted in one transaction. */
export async function makePreKeys(vault: Vault, { keys }: Connection, count: number) {
  const { creds } = vault.auth;
  return keys.transaction(async () => {
    const { update, preKeys } = await getNextPreKeys({ creds, keys }, count);
    Object.assign(creds, update);
    return preKeys;
  }, creds.me?.id ?? '');
}

/** What the server would hand out for us; uses up one pre-key. */
export async function bundleOf(vault: Vault, connection: Connection): Promise<KeyBundle> {
  const { registrationId, signedIdentityKey, signedPreKey } = vault.auth.creds;
  const [made] = Object.entries(await makePreKeys(vault, connection, 1));
  if (made === undefined) throw new Error('no pre-key was made');
  return {
    registrationId,
    identityKey: signedIdentityKey.public,
    signedPreKey: {
      id: signedPreKey.keyId,
      key: signedPreKey.keyPair.public,
      signature: signedPreKey.signature,
    },
    preKey: { id: Number(made[0]), key: made[1].public },
  };
}

export function stanzaOf(
  id: string,
  from: string,
  sealed: { readonly type: string; readonly ciphertext: Uint8Array },
  attrs: Readonly<Record<string, string>> = {},
): BinaryNode & { readonly content: BinaryNode[] } {
  const content = Buffer.from(sealed.ciphertext);
  const enc = { tag: 'enc', attrs: { v: '2', type: sealed.type }, content };
  return { tag: 'message', attrs: { id, from, t: '1790000000', ...attrs }, content: [enc] };
}

/** A message stanza as Baileys handles it: decrypted, and receipted only when this resolves. */
export async function receive(
  rig: Pick<Rig, 'ledger'>,
  { repository }: Connection,
  stanza: BinaryNode,
): Promise<string> {
  rig.ledger.observe(stanza);
  const [enc] = Array.isArray(stanza.content) ? stanza.content : [];
  const ciphertext = enc?.content;
  const { from = '' } = stanza.attrs;
  if (enc === undefined || !(ciphertext instanceof Uint8Array))
    throw new Error('nothing to decrypt');
  const type = enc.attrs['type'] === 'pkmsg' ? 'pkmsg' : 'msg';
  const plaintext = await repository.decryptMessage({ jid: from, type, ciphertext });
  return proto.Message.decode(unpadRandomMax16(plaintext)).conversation ?? '';
}

/** A session used in both directions: neither side needs a pre-key any more. */
export async function acquaint(
  rig: Rig,
  connection: Connection,
  person: SignalDevice,
  jid: string,
): Promise<void> {
  await person.startSession(OWN.lid, await bundleOf(rig.vault, connection));
  const hello = await person.encrypt(OWN.lid, { conversation: 'hello' });
  await receive(rig, connection, stanzaOf(`hello-${jid}`, jid, hello));
  await person.decrypt(OWN.lid, await encryptFor(connection, jid, 'hello yourself'));
}

export async function encryptFor(
  { repository }: Connection,
  jid: string,
  text: string,
): Promise<Sealed> {
  return repository.encryptMessage({ jid, data: encodeWAMessage({ conversation: text }) });
}

/** Every row of the prefix, for comparing. */
export async function rowsOf(state: KeyValueStore, prefix = ''): Promise<Map<string, string>> {
  return new Map((await state.list(prefix)).map(({ key, value }) => [key, value]));
}

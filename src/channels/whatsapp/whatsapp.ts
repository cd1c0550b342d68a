// WhatsApp as a channel: one linked account. A run connects the parts that share its link: the
// vault stores the identity, the link keeps the connection, the inbox handles inbound and the
// outbox outbound messages.

import {
  DEFAULT_CONNECTION_CONFIG,
  isHostedPnUser,
  isPnUser,
  type SignalRepositoryWithLIDStore,
  type SocketConfig,
  type WASocket,
} from '@whiskeysockets/baileys';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { BACKOFF, ChannelError, notSent } from '../../kernel/message/errors.ts';
import { DEFAULT_ACCOUNT } from '../../kernel/message/ids.ts';
import { t } from '../../lib/texts.ts';
import { aborted, orAborted } from '../../lib/time/clock.ts';
import {
  type Channel,
  type ChannelHost,
  createReadiness,
  type Editing,
  type Reactions,
} from '../channel.ts';
import { createContexts } from './context.ts';
import { MIN_EDIT_INTERVAL_MS } from './drafts.ts';
import { createInbox } from './inbox.ts';
import { type Ledger, openLedger } from './ledger.ts';
import { Link } from './link.ts';
import { createMediaAgain, downloadMedia, type MediaAgain } from './media-download.ts';
import { createOutbox, type Outbox, TYPING_SHOWN_MS } from './outbox.ts';
import { createOwnerPause } from './pacer.ts';
import { createGroupMembers, createLidDirectory, createLidLookup, createPeople } from './people.ts';
import { withRecentRows } from './recent-rows.ts';
import { createUnresolved } from './row-reader.ts';
import { isNotSaved, type Unit } from './rows.ts';
import { LINK_REMEDY } from './rules/endings.ts';
import { WHATSAPP } from './rules/jid.ts';
import type { WhatsAppConfig } from './settings.ts';
import { useKeyObjects } from './signal-crypto.ts';
import { mediaAgent } from './transport.ts';
import { createUndecryptable } from './undecryptable.ts';
import { LINK_DAMAGED, openFreshVault, openVault, type Vault } from './vault.ts';

type WhatsAppDeps = {
  /** 0 to 1; spreads waits. */
  readonly random: () => number;
  /** The current allow list. */
  allowFrom(): readonly string[];
};

/**
 * Longest text a person can send in one message, UTF-16 units; answers are split into shorter ones,
 * see drafts.ts.
 */
const INBOUND_UNITS = 65_536;
/** Outbound files are held in memory, encrypted and uploaded; WhatsApp itself accepts far more. */
const MAX_UPLOAD_BYTES = 100_000_000;
/** A paced answer may wait until the next day, see `pacing.firstContactsPerDay`. */
const LIFETIME_MS = 3 * 86_400_000;

export function createWhatsAppChannel(config: WhatsAppConfig, deps: WhatsAppDeps): Channel {
  const { socketUrl, proxy, ackReaction, streaming } = config;
  const agent = mediaAgent(proxy);
  const readiness = createReadiness();
  /** Of the current run, or of the next. */
  let opened = Promise.withResolvers<Session>();
  let loginWanted = Promise.withResolvers<void>();
  let session: Session | undefined;

  function outbox(): Outbox {
    if (session !== undefined) return session.outbox;
    throw notSent(t`the WhatsApp channel is not running`, BACKOFF, 'whatsapp_stopped');
  }

  const reactions: Reactions = {
    acknowledgement: ackReaction,
    react: (...given) => outbox().reactions.react(...given),
  };
  const editing: Editing = {
    minIntervalMs: MIN_EDIT_INTERVAL_MS,
    place: (...given) => outbox().edits.place(...given),
    edit: (...given) => outbox().edits.edit(...given),
    remove: (...given) => outbox().edits.remove(...given),
  };

  return {
    name: WHATSAPP,
    account: DEFAULT_ACCOUNT,
    limits: { textUnits: INBOUND_UNITS },
    onUnknown: 'idempotent',
    lifetimeMs: LIFETIME_MS,
    coalesces: true,
    readiness,
    login: {
      async *begin(options, signal) {
        loginWanted.resolve();
        const { link } = await orAborted(opened.promise, signal);
        yield* link.login.begin(options, signal);
      },
    },
    retracting: { retract: (...given) => outbox().edits.retract(...given) },
    closeChoices: (...given) => outbox().edits.closeChoices(...given),
    attachments: {
      maxUploadBytes: MAX_UPLOAD_BYTES,
      fetch: (ref, signal) =>
        downloadMedia(
          ref,
          { socketUrl, agent, again: async (file) => session?.mediaAgain(file) },
          signal,
        ),
    },
    typing: {
      intervalMs: TYPING_SHOWN_MS,
      show: async (chat, signal) => session?.outbox.typing.show(chat, signal),
    },
    ...(ackReaction === '' ? {} : { reactions }),
    ...(streaming ? { editing } : {}),
    async run(host, signal) {
      const state = withRecentRows(host.state);
      let vault: Vault | undefined;
      try {
        vault = await vaultOf(host, state, () => orAborted(loginWanted.promise, signal));
        const onReady = (isReady: boolean) => readiness.set(isReady);
        session = await openSession({ ...deps, config, host, state, vault, onReady });
        opened.resolve(session);
        await session.run(signal);
      } catch (error) {
        if (!signal.aborted) throw error;
      } finally {
        readiness.set(false);
        session = undefined;
        opened = Promise.withResolvers();
        loginWanted = Promise.withResolvers();
        await vault?.close();
      }
    },
    send: async (message, context) => outbox().send(message, context),
  };
}

/** If the stored link is damaged, a person decides to start anew: by a login. */
async function vaultOf(
  host: ChannelHost,
  state: KeyValueStore,
  loginWanted: () => Promise<void>,
): Promise<Vault> {
  const { clock, log } = host;
  try {
    return await openVault({ state, clock, log });
  } catch (error) {
    if (!(error instanceof ChannelError) || error.code !== LINK_DAMAGED) throw error;
    host.log.error('stored whatsapp link damaged', { error });
    host.report({ kind: 'stopped', reason: error.message, remedy: LINK_REMEDY });
    host.alert(`${error.message} ${LINK_REMEDY}`);
    await loginWanted();
    return openFreshVault({ state, clock, log });
  }
}

type SessionDeps = WhatsAppDeps & {
  readonly config: WhatsAppConfig;
  readonly host: ChannelHost;
  /** Of the people and their keys. */
  readonly state: KeyValueStore;
  readonly vault: Vault;
  /** Reports whether the connection is open and usable. */
  onReady(isReady: boolean): void;
};

type Session = {
  readonly link: Link;
  readonly outbox: Outbox;
  readonly mediaAgain: MediaAgain;
  /** Runs until aborted; if one part fails, all end and the error is thrown. */
  run(signal: AbortSignal): Promise<void>;
};

async function openSession(deps: SessionDeps): Promise<Session> {
  const { config, host, state, vault, random, onReady } = deps;
  const { clock, log } = host;
  const ledger = await openLedger({ state, clock, log, own: () => vault.auth.creds.me });
  const undecryptable = createUndecryptable(host);
  const groupMembers = createGroupMembers(clock);

  /** Called before the socket can deliver anything. */
  function onSocket(socket: WASocket): Disposable {
    const stack = new DisposableStack();
    stack.use(outbox.attach(socket));
    stack.use(undecryptable.attach(socket));
    stack.use(groupMembers.attach(socket));
    stack.defer(() => ledger.disconnected());
    socket.ws.prependListener('CB:message', (stanza) => ledger.observe(stanza));
    return stack;
  }

  const link = new Link({
    vault,
    ledger,
    settings: config,
    host,
    random,
    onReady,
    getMessage: (key) => outbox.getMessage(key),
    cachedGroupMetadata: groupMembers.of,
    makeSignalRepository: createSessionRepository({ vault, ledger, clock, log }),
    onSocket,
  });
  const account = () => vault.account;
  const directory = createLidDirectory({
    keys: () => vault.auth.keys,
    mapping: () => link.socket?.signalRepository.lidMapping,
    clock,
    log,
  });
  const people = createPeople({ state, clock, log, directory, account });
  const contexts = createContexts(state);
  const outbox: Outbox = createOutbox({
    link,
    people,
    contexts,
    isPaused: (chat) => inbox.isPaused(chat),
    unread: (chat) => inbox.takeUnread(chat),
    settings: config,
    host,
    random,
  });
  const inbox = createInbox({
    host,
    people,
    contexts,
    ledger,
    link,
    settings: config,
    pause: createOwnerPause({ state, clock, pauseMs: config.ownerPauseMins * 60_000 }),
    unresolved: createUnresolved({ host, allowFrom: deps.allowFrom }),
    undecryptable,
    account,
    isOurs: (id) => outbox.isOurs(id),
    noteTrouble: (trouble) => link.noteTrouble(trouble),
    random,
  });
  return {
    link,
    outbox,
    mediaAgain: createMediaAgain({ socket: () => link.socket, clock, log }),
    async run(signal) {
      const failing = new AbortController();
      const whole = AbortSignal.any([signal, failing.signal]);
      const taking = AbortSignal.any([whole, host.closing]);
      const parts = [link.run(whole), inbox.run(taking), undecryptable.run(taking)];
      for (const part of parts) part.catch(() => failing.abort());
      await Promise.allSettled(parts);
      await Promise.all(parts);
    },
  };
}

// Makes Baileys' Signal sessions safe: every call is one unit of work of the vault, outside
// Baileys' own transactions, and a decrypted message is stored in the same transaction as the
// ratchet that can never decrypt it again. Baileys sends the delivery receipt only after such a
// call returned.

type SessionRepositoryDeps = Pick<ChannelHost, 'clock' | 'log'> & {
  readonly vault: Vault;
  readonly ledger: Ledger;
};

export function createSessionRepository(
  deps: SessionRepositoryDeps,
): SocketConfig['makeSignalRepository'] {
  const { vault, clock, log } = deps;
  useKeyObjects();
  return ({ creds }, logger, ask) => {
    const connection = new AbortController();
    const { signal } = connection;
    const units = vault.signalUnits(creds);
    const lookup = createLidLookup(ask, clock, log);
    const { makeSignalRepository } = DEFAULT_CONNECTION_CONFIG;
    const inner = makeSignalRepository({ creds, keys: units.keys }, logger, lookup);
    /** Calls of Baileys for an ended connection reach nobody: they use up no key. */
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
        const problem = t`This connection to WhatsApp has ended.`;
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
   * Baileys acknowledges a message it could not handle, and the server deletes it. One that could
   * not be stored stays unanswered instead: the server sends it again on the next connection.
   */
  async function unanswered<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (!isNotSaved(error)) throw error;
      log.error('WhatsApp message not stored', { error });
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

/** Fills the mapping's cache first, so that nothing waits for the network under the lock. */
async function lookedUp<T>(
  { lidMapping }: SignalRepositoryWithLIDStore,
  jid: string,
  call: () => Promise<T>,
): Promise<T> {
  if (isPnUser(jid) || isHostedPnUser(jid)) await lidMapping.getLIDForPN(jid);
  return call();
}

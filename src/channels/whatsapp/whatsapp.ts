// WhatsApp as a channel: one linked account. A run wires the parts that share its link: the vault keeps the
// identity, the link the connection, the inbox what comes in and the outbox what goes out.

import type { WASocket } from '@whiskeysockets/baileys';
import type { Receipt, SendContext } from '../../kernel/bus/bus.ts';
import { BACKOFF, ChannelError, DeliveryError } from '../../kernel/message/errors.ts';
import { DEFAULT_ACCOUNT } from '../../kernel/message/ids.ts';
import type { OutboundMessage } from '../../kernel/message/message.ts';
import { orAborted } from '../../lib/time/clock.ts';
import {
  type Attachments,
  type Channel,
  type ChannelHost,
  createReadiness,
  type Editing,
  type LoginOptions,
  type Reactions,
  type Retracting,
  type Typing,
} from '../channel.ts';
import { CAPTION_UNITS, MIN_EDIT_INTERVAL_MS } from './drafts.ts';
import { createInbox } from './inbox.ts';
import { openLedger } from './ledger.ts';
import { Link } from './link.ts';
import { createMediaAgain, downloadMedia, type MediaAgain } from './media-download.ts';
import { createOutbox, type Outbox, TYPING_SHOWN_MS } from './outbox.ts';
import { createOwnerPause } from './pacer.ts';
import { createGroupMembers, createLidDirectory, createPeople } from './people.ts';
import { createUnresolved } from './row-reader.ts';
import { LINK_REMEDY } from './rules/endings.ts';
import { WHATSAPP } from './rules/jid.ts';
import { createSessionRepository } from './session-repository.ts';
import type { WhatsAppConfig } from './settings.ts';
import { createUndecryptable } from './undecryptable.ts';
import { LINK_DAMAGED, openFreshVault, openVault, type Vault } from './vault.ts';

export type WhatsAppDeps = {
  /** 0 to 1; spreads waits. */
  readonly random: () => number;
  /** Who may write, as configured now. */
  allowFrom(): readonly string[];
};

/** Longest text a person can send in one message, UTF-16 units; ours are cut shorter, see drafts.ts. */
const INBOUND_UNITS = 65_536;
/** What is sent is held in memory, encrypted and uploaded; WhatsApp itself takes far more. */
const MAX_UPLOAD_BYTES = 100_000_000;
/** A paced answer may wait until the next day, see `pacing.firstContactsPerDay`. */
const LIFETIME_MS = 3 * 86_400_000;

export function createWhatsAppChannel(config: WhatsAppConfig, deps: WhatsAppDeps): Channel {
  return new WhatsAppChannel(config, deps);
}

class WhatsAppChannel implements Channel {
  readonly name = WHATSAPP;
  readonly account = DEFAULT_ACCOUNT;
  readonly limits = { textUnits: INBOUND_UNITS };
  readonly onUnknown = 'idempotent';
  readonly lifetimeMs = LIFETIME_MS;
  readonly coalesces = true;
  readonly readiness = createReadiness();
  readonly attachments: Attachments;
  readonly login = { begin: this.#login.bind(this) };
  readonly retracting: Retracting = {
    retract: (...given) => this.#running().outbox.edits.retract(...given),
  };
  readonly typing: Typing;
  readonly editing?: Editing;
  readonly reactions?: Reactions;
  readonly #config: WhatsAppConfig;
  readonly #deps: WhatsAppDeps;
  /** Of the run under way, or of the next. */
  #opened = Promise.withResolvers<Session>();
  #loginWanted = Promise.withResolvers<void>();
  #session: Session | undefined;

  constructor(config: WhatsAppConfig, deps: WhatsAppDeps) {
    this.#config = config;
    this.#deps = deps;
    this.attachments = {
      maxUploadBytes: MAX_UPLOAD_BYTES,
      maxCaptionUnits: CAPTION_UNITS,
      fetch: (ref, signal) => {
        const { socketUrl } = config;
        const again: MediaAgain = async (file) => this.#session?.mediaAgain(file);
        return downloadMedia(ref, { socketUrl, again }, signal);
      },
    };
    this.typing = {
      intervalMs: TYPING_SHOWN_MS,
      show: async (chat, signal) => this.#session?.outbox.typing.show(chat, signal),
    };
    if (config.ackReaction !== '') {
      this.reactions = {
        acknowledgement: config.ackReaction,
        react: (...given) => this.#running().outbox.reactions.react(...given),
      };
    }
    if (config.streaming) {
      this.editing = {
        minIntervalMs: MIN_EDIT_INTERVAL_MS,
        place: (...given) => this.#drafts().place(...given),
        edit: (...given) => this.#drafts().edit(...given),
        remove: (...given) => this.#drafts().remove(...given),
      };
    }
  }

  async run(host: ChannelHost, signal: AbortSignal): Promise<void> {
    let vault: Vault | undefined;
    try {
      vault = await this.#openVault(host, signal);
      const session = await openSession({
        ...this.#deps,
        config: this.#config,
        host,
        vault,
        onReady: (isReady) => this.readiness.set(isReady),
      });
      this.#session = session;
      this.#opened.resolve(session);
      await session.run(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.readiness.set(false);
      this.#session = undefined;
      this.#opened = Promise.withResolvers();
      this.#loginWanted = Promise.withResolvers();
      await vault?.close();
    }
  }

  async send(message: OutboundMessage, context: SendContext): Promise<Receipt> {
    return this.#running().outbox.send(message, context);
  }

  async *#login(options: LoginOptions, signal: AbortSignal) {
    this.#loginWanted.resolve();
    const { link } = await orAborted(this.#opened.promise, signal);
    yield* link.login.begin(options, signal);
  }

  /** Where what is stored is damaged, a person decides to begin anew: by a login. */
  async #openVault(host: ChannelHost, signal: AbortSignal): Promise<Vault> {
    try {
      return await openVault(host);
    } catch (error) {
      if (!(error instanceof ChannelError) || error.code !== LINK_DAMAGED) throw error;
      host.log.error('the stored whatsapp link is damaged', { error });
      host.report({ kind: 'stopped', reason: error.message, remedy: LINK_REMEDY });
      host.alert(`${error.message} ${LINK_REMEDY}`);
      await orAborted(this.#loginWanted.promise, signal);
      return openFreshVault(host);
    }
  }

  #running(): Session {
    if (this.#session !== undefined) return this.#session;
    throw new DeliveryError('the WhatsApp channel does not run', {
      certainty: 'not_sent',
      remedy: BACKOFF,
      code: 'whatsapp_stopped',
    });
  }

  #drafts(): Editing {
    return this.#running().outbox.edits;
  }
}

// One run of the channel: the parts that share the account's link, wired and running together. What
// each does is in its own file; this is the only one that knows them all.

type SessionDeps = WhatsAppDeps & {
  readonly config: WhatsAppConfig;
  readonly host: ChannelHost;
  readonly vault: Vault;
  /** Reports whether the connection is open and of use. */
  onReady(isReady: boolean): void;
};

type Session = {
  readonly link: Link;
  readonly outbox: Outbox;
  readonly mediaAgain: MediaAgain;
  /** Until aborted; where one part fails, all end and the error is thrown. */
  run(signal: AbortSignal): Promise<void>;
};

async function openSession(deps: SessionDeps): Promise<Session> {
  const { config, host, vault, random, onReady } = deps;
  const { state, clock, log } = host;
  const ledger = await openLedger({ state, clock, log, own: () => vault.auth.creds.me });
  const undecryptable = createUndecryptable(host);
  const groupMembers = createGroupMembers(clock);

  /** Before the socket can deliver anything. */
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
  const outbox: Outbox = createOutbox({
    link,
    people,
    isPaused: (chat) => inbox.isPaused(chat),
    unread: (chat) => inbox.takeUnread(chat),
    settings: config,
    host,
    random,
  });
  const inbox = createInbox({
    host,
    people,
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

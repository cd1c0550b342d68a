// One connection from the creation of its socket until nothing of it is left: options, listeners,
// watchdogs (case W12), pending queries and the TCP connection; how far it came, and whether it may
// be used. The link decides what its end means, and whether another one follows.

import {
  type BinaryNode,
  makeWASocket,
  proto,
  type SocketConfig,
  type WASocket,
} from '@whiskeysockets/baileys';
import { BACKOFF, ChannelError } from '../../kernel/message/errors.ts';
import { t } from '../../lib/texts.ts';
import type { ChannelHost } from '../channel.ts';
import { keepRequestsOnly, limitPhoneRequests } from './content.ts';
import type { WhatsAppCause, WhatsAppPhase } from './rules/endings.ts';
import { ACK_EVENT } from './sent-messages.ts';
import { withTransactionsThatEnd } from './signal-keys.ts';
import {
  type Carrier,
  createBaileysLogger,
  createCarrier,
  createUploadAgent,
} from './transport.ts';
import type { Vault } from './vault.ts';

/** The library itself would wait 30 s for the other side to close. */
const CLOSING_MS = 5000;
/** Time for the library to report why a cut connection closed. */
const LAST_WORD_MS = 1000;
/** How long the library shows the first QR code and each further one. */
const FIRST_QR_MS = 60_000;
const NEXT_QR_MS = 20_000;
/** For ends without a code of the library: the handshake failed, or the cause is unknown. */
const HANDSHAKE_CODE = 400;
const UNKNOWN_CODE = 500;
/** libsignal's error for a message that was read already. */
const READ_BEFORE = /Key used already/;
/** Three of the library's keep-alives, each of which the server answers. */
const SILENCE_MS = 90_000;
const LOGIN_MS = 90_000;
/** The library shows QR codes for 160 s. */
const PAIRING_MS = 180_000;
/** How long messages may wait to be processed without any progress. */
const STALL_MS = 60_000;
/** Time for the marker after the waiting messages (case W03); the library's own is 30 s. */
const MARKER_MS = 35_000;
const LOOK_EVERY_MS = 5000;

/** What the rest of the channel provides to each socket. */
export type SocketParts = Pick<
  SocketConfig,
  'getMessage' | 'cachedGroupMetadata' | 'makeSignalRepository'
> & {
  readonly ledger: { stalledMs(): number | undefined };
  /** Called before the socket can deliver anything. */
  onSocket(socket: WASocket): Disposable;
};

export type ConnectionDeps = SocketParts &
  Pick<ChannelHost, 'clock' | 'log'> & {
    readonly url: URL;
    /** The setting; empty: none. */
    readonly proxy: string;
    readonly vault: Pick<Vault, 'auth' | 'account' | 'save'>;
  };

/** Called in order; none may throw. */
export type ConnectionEvents = {
  /** `expiresAt`: epoch milliseconds. */
  onQr(text: string, expiresAt: number): void;
  onPaired(): void;
  onOpen(): void;
  onFrame(): void;
  onUndecryptable(): void;
  /** `openSocket` or `isCatchingUp` changed. */
  onChange(): void;
};

export type EndedConnection = {
  readonly cause: WhatsAppCause;
  /** How far it came. */
  readonly phase: WhatsAppPhase;
  /** The phone confirmed the pairing during this connection. */
  readonly isPaired: boolean;
  /** How long it was open, milliseconds. */
  readonly openMs: number;
  /** A message was read, or the server accepted one of ours. */
  readonly hasCarried: boolean;
};

export class Connection {
  /** The socket in any state. */
  readonly socket: WASocket;
  /** Resolves, never rejects, when the connection is closed and changed credentials are stored. */
  readonly closed: Promise<EndedConnection>;
  readonly #deps: ConnectionDeps;
  readonly #events: ConnectionEvents;
  readonly #carrier: Carrier;
  readonly #auth: SocketConfig['auth'];
  readonly #isPairing: boolean;
  readonly #attached: Disposable;
  readonly #saving = new Set<Promise<unknown>>();
  readonly #over = Promise.withResolvers<WhatsAppCause>();
  #state: 'opening' | 'open' | 'ending' | 'over' = 'opening';
  #cause: WhatsAppCause | undefined;
  #look: Disposable | undefined;
  #marker: Disposable | undefined;
  #closing: Disposable | undefined;
  #openedAt: number | undefined;
  #frameAt: number;
  #isCatchingUp = true;
  #hasCarried = false;
  #isPaired = false;
  #qrCount = 0;

  constructor(deps: ConnectionDeps, events: ConnectionEvents) {
    this.#deps = deps;
    this.#events = events;
    this.#auth = deps.vault.auth;
    this.#isPairing = deps.vault.account === undefined;
    this.#carrier = createCarrier(deps.url, deps.proxy);
    this.closed = this.#over.promise.then((cause) => this.#ended(cause));
    const logger = createBaileysLogger(deps);
    this.socket = makeWASocket({
      ...OPTIONS,
      waWebSocketUrl: deps.url,
      auth: this.#auth,
      logger,
      agent: this.#carrier.agent,
      fetchAgent: createUploadAgent(deps.url, deps.proxy),
      getMessage: deps.getMessage,
      cachedGroupMetadata: deps.cachedGroupMetadata,
      makeSignalRepository: (...given) => this.#watched(deps.makeSignalRepository(...given)),
    });
    const { authState } = this.socket;
    authState.keys = withTransactionsThatEnd(authState.keys);
    limitPhoneRequests(this.socket, deps.clock);
    keepRequestsOnly(this.socket);
    guardListeners(this.socket, (err) => logger.error({ err }, 'listener failed'));
    this.#attached = this.#attach();
    this.#listen();
    this.#frameAt = deps.clock.monotonic();
    this.#watch(this.#frameAt);
  }

  /** The socket while it is open and not about to end. */
  get openSocket(): WASocket | undefined {
    return this.#state === 'open' ? this.socket : undefined;
  }

  /** True until the server has delivered the waiting messages, or the marker is overdue. */
  get isCatchingUp(): boolean {
    return this.#isCatchingUp;
  }

  /** The phone confirmed the pairing during this connection. */
  get isPaired(): boolean {
    return this.#isPaired;
  }

  /** Ends the connection for a reason of our own; undefined: not reported. */
  end(cause?: WhatsAppCause): void {
    this.#cause ??= cause;
    this.socket.end(undefined).catch((error) => {
      this.#deps.log.warn('whatsapp connection ended with an error', { error });
    });
  }

  /** An unattended socket must not live on. */
  #attach(): Disposable {
    try {
      return this.#deps.onSocket(this.socket);
    } catch (error) {
      this.end();
      this.#carrier.cut();
      throw error;
    }
  }

  #listen(): void {
    const { ws, ev } = this.socket;
    ws.on('frame', () => {
      this.#frameAt = this.#deps.clock.monotonic();
      this.#events.onFrame();
    });
    ws.on(ACK_EVENT, ({ attrs }: BinaryNode) => {
      if (attrs['error'] === undefined) this.#hasCarried = true;
    });
    ev.on('creds.update', (update) => this.#onCreds(update.account != null));
    ev.on('connection.update', (update) => {
      if (update.qr !== undefined) this.#onQr(update.qr);
      if (update.isNewLogin) {
        this.#isPaired = true;
        this.#events.onPaired();
      }
      if (update.connection === 'open') this.#onOpen();
      if (update.receivedPendingNotifications) this.#caughtUp();
      if (update.connection === 'close') this.#finish(update.lastDisconnect?.error);
    });
    // Turns a missed call into a message, in a listener whose errors nothing catches.
    ev.removeAllListeners('call');
  }

  #onQr(text: string): void {
    const lifetimeMs = this.#qrCount === 0 ? FIRST_QR_MS : NEXT_QR_MS;
    this.#qrCount += 1;
    this.#events.onQr(text, this.#deps.clock.now() + lifetimeMs);
  }

  /** Until the phone has confirmed, nothing is worth storing. */
  #onCreds(hasAccount: boolean): void {
    if (this.#auth.creds.account === undefined) return;
    const saving = this.#deps.vault.save();
    // The confirmation is sent after the save: the phone never shows a link that is not stored.
    if (this.#isPairing && hasAccount) this.#carrier.holdDuring(saving);
    const settled = saving.catch((error) => {
      this.#deps.log.error('whatsapp credentials not stored', { error });
      this.end({ kind: 'unsaved' });
    });
    this.#saving.add(settled);
    settled.finally(() => this.#saving.delete(settled));
  }

  #onOpen(): void {
    if (this.#state !== 'opening') return;
    const { clock } = this.#deps;
    this.#state = 'open';
    this.#openedAt = clock.monotonic();
    this.#marker = clock.timer(MARKER_MS, () => this.#onMarkerMissing());
    this.#events.onOpen();
    this.#events.onChange();
  }

  #onMarkerMissing(): void {
    if (!this.#isCatchingUp) return;
    this.#deps.log.warn('whatsapp did not confirm the delivery of waiting messages');
    // The library holds its own events back until that marker.
    this.socket.ev.flush();
    this.#caughtUp();
  }

  #caughtUp(): void {
    this.#isCatchingUp = false;
    this.#events.onChange();
  }

  #watch(startedAt: number): void {
    const { clock } = this.#deps;
    this.#look = clock.timer(LOOK_EVERY_MS, () => {
      const trouble = this.#troubleAt(clock.monotonic(), startedAt);
      if (trouble === undefined) this.#watch(startedAt);
      else this.end({ kind: trouble });
    });
  }

  #troubleAt(now: number, startedAt: number): 'silent' | 'stalled' | 'overdue' | undefined {
    const isOpen = this.#openedAt !== undefined;
    if (!isOpen && now - startedAt >= (this.#isPairing ? PAIRING_MS : LOGIN_MS)) return 'overdue';
    if (now - this.#frameAt >= SILENCE_MS) return 'silent';
    return isOpen && (this.#deps.ledger.stalledMs() ?? 0) >= STALL_MS ? 'stalled' : undefined;
  }

  /** The library closes its repository first when it ends a connection. */
  #watched(repository: ReturnType<SocketConfig['makeSignalRepository']>) {
    const { close, decryptMessage, decryptGroupMessage } = repository;
    const count = (error: unknown) => {
      const isUnread = !(error instanceof ChannelError) && !READ_BEFORE.test(String(error));
      if (isUnread) this.#events.onUndecryptable();
      throw error;
    };
    const read = (plaintext: Uint8Array) => {
      this.#hasCarried = true;
      return plaintext;
    };
    repository.decryptMessage = (given) => decryptMessage.call(repository, given).then(read, count);
    repository.decryptGroupMessage = (given) =>
      decryptGroupMessage.call(repository, given).then(read, count);
    repository.close = () => {
      close?.call(repository);
      this.#onEnding();
    };
    return repository;
  }

  #onEnding(): void {
    if (this.#state === 'ending' || this.#state === 'over') return;
    const { clock } = this.#deps;
    this.#state = 'ending';
    this.#caughtUp();
    this.#closing = clock.timer(CLOSING_MS, () => {
      this.#carrier.cut();
      this.#closing = clock.timer(LAST_WORD_MS, () => this.#finish(undefined));
    });
  }

  #finish(error: unknown): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    for (const timer of [this.#closing, this.#look, this.#marker]) timer?.[Symbol.dispose]();
    const { ws } = this.socket;
    const gone = new ChannelError('whatsapp_closed', t`the connection to WhatsApp is closed`, {
      remedy: BACKOFF,
    });
    // The library abandons pending queries, which then wait for a deadline of their own.
    ws.emit('error', gone);
    this.#attached[Symbol.dispose]();
    ws.removeAllListeners();
    // A late error without a listener would be thrown.
    ws.on('error', () => undefined);
    this.#carrier.cut();
    const fallbackCode = this.#openedAt === undefined ? HANDSHAKE_CODE : UNKNOWN_CODE;
    const cause = this.#cause ?? causeOf(error, fallbackCode);
    this.#caughtUp();
    Promise.allSettled(this.#saving).then(() => this.#over.resolve(cause));
  }

  #ended(cause: WhatsAppCause): EndedConnection {
    const openedAt = this.#openedAt;
    const unopened = this.#isPairing ? 'pairing' : 'opening';
    return {
      cause,
      phase: openedAt === undefined ? unopened : 'open',
      isPaired: this.#isPaired,
      openMs: openedAt === undefined ? 0 : this.#deps.clock.monotonic() - openedAt,
      hasCarried: this.#hasCarried,
    };
  }
}

function causeOf(error: unknown, fallbackCode: number): WhatsAppCause {
  const message = error instanceof Error ? error.message : '';
  const output = Reflect.get(Object(error), 'output');
  const code = Reflect.get(Object(output), 'statusCode');
  return { kind: 'closed', code: typeof code === 'number' ? code : fallbackCode, message };
}

/** Several of the library's listeners are async and may reject, which would end the process. */
function guardListeners({ ws }: WASocket, onRejection: (error: unknown) => void): void {
  for (const name of ws.eventNames()) {
    const listeners = ws.listeners(name);
    ws.removeAllListeners(name);
    for (const listener of listeners) {
      ws.on(name, (...values) => {
        const result: unknown = Reflect.apply(listener, ws, values);
        if (result instanceof Promise) result.catch(onRejection);
      });
    }
  }
}

/** Reference section 6. The rest keeps the library's default, including its client version. */
const OPTIONS = {
  // Otherwise the owner's phone would no longer ring.
  markOnlineOnConnect: false,
  syncFullHistory: false,
  shouldSyncHistoryMessage: wantsHistory,
  generateHighQualityLinkPreview: false,
  // After each unreadable message the library waits this long and processes no other: with its
  // default, a flood from one person silences everybody. Without any wait it starves all timers.
  retryRequestDelayMs: 1,
} as const;

/**
 * The first sync maps LIDs to numbers; recent chats are megabytes of no use. If asked before any
 * came (then no file is named), the library only wants to know whether to wait for the first sync,
 * which brings our own name.
 */
function wantsHistory(notice: proto.Message.IHistorySyncNotification): boolean {
  const { HistorySyncType } = proto.HistorySync;
  switch (notice.syncType) {
    case HistorySyncType.INITIAL_BOOTSTRAP:
    case HistorySyncType.PUSH_NAME:
      return true;
    case HistorySyncType.RECENT:
      return !notice.directPath && !notice.initialHistBootstrapInlinePayload?.length;
    default:
      return false;
  }
}

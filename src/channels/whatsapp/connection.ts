// One socket from its making until nothing of it is left: its options, listeners, timers, pending queries and
// TCP connection. What its end means, and whether another one follows, is decided by the link.

import { Agent as PlainAgent } from 'node:http';
import { Agent } from 'node:https';
import type { Duplex } from 'node:stream';
import {
  type BinaryNode,
  makeWASocket,
  proto,
  type SocketConfig,
  type UserFacingSocketConfig,
  type WASocket,
} from '@whiskeysockets/baileys';
import { BACKOFF, ChannelError, NEVER } from '../../kernel/message/errors.ts';
import type { Logger } from '../../lib/logger.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createBaileysLogger } from './baileys-logger.ts';
import { limitPhoneRequests } from './envelope.ts';
import type { WhatsAppCause } from './rules/endings.ts';
import { ACK_EVENT } from './sent-messages.ts';
import type { Vault } from './vault.ts';

/** The library itself would wait 30 s for the other side to close. */
const CLOSING_MS = 5000;
/** After the connection was cut, for the library to say why it closed. */
const LAST_WORD_MS = 1000;
/** How long the library shows the first QR code and each further one. */
const FIRST_QR_MS = 60_000;
const NEXT_QR_MS = 20_000;
/** Where the library names no code: the handshake failed, or something unknown did. */
const HANDSHAKE_CODE = 400;
const UNKNOWN_CODE = 500;
/** libsignal, on a message that was read already. */
const READ_BEFORE = /Key used already/;

export type ConnectionDeps = {
  readonly url: URL;
  readonly vault: Pick<Vault, 'auth' | 'account' | 'save'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly getMessage: SocketConfig['getMessage'];
  readonly cachedGroupMetadata: SocketConfig['cachedGroupMetadata'];
  readonly makeSignalRepository: SocketConfig['makeSignalRepository'];
  /** Called before the socket can deliver anything. */
  onSocket(socket: WASocket): Disposable;
};

/** Told in order; none may throw. */
export type ConnectionEvents = {
  /** `expiresAt`: epoch milliseconds. */
  onQr(text: string, expiresAt: number): void;
  onPaired(): void;
  onOpen(): void;
  /** The server has delivered what waited for us. */
  onCaughtUp(): void;
  onFrame(): void;
  onUndecryptable(): void;
  /** A message was read, or one of ours was taken by the server. */
  onMessage(): void;
  /** It is no longer of use, though not yet closed. */
  onEnding(): void;
};

export class Connection {
  readonly socket: WASocket;
  /** Resolves, never rejects, when the connection is closed and changed credentials are stored. */
  readonly closed: Promise<WhatsAppCause>;
  readonly #deps: ConnectionDeps;
  readonly #events: ConnectionEvents;
  readonly #carrier: Carrier;
  readonly #auth: SocketConfig['auth'];
  readonly #wasLinked: boolean;
  readonly #attached: Disposable;
  readonly #saving = new Set<Promise<unknown>>();
  readonly #resolve: (cause: WhatsAppCause) => void;
  #timer: Disposable | undefined;
  #cause: WhatsAppCause | undefined;
  #phase: 'opening' | 'open' | 'ending' | 'over' = 'opening';
  #fallbackCode = HANDSHAKE_CODE;
  #isPaired = false;
  #qrCount = 0;

  constructor(deps: ConnectionDeps, events: ConnectionEvents) {
    this.#deps = deps;
    this.#events = events;
    this.#auth = deps.vault.auth;
    this.#wasLinked = deps.vault.account !== undefined;
    this.#carrier = createCarrier(deps.url);
    const { promise, resolve } = Promise.withResolvers<WhatsAppCause>();
    this.closed = promise;
    this.#resolve = resolve;
    const logger = createBaileysLogger(deps);
    this.socket = makeWASocket(
      socketOptions({
        url: deps.url,
        auth: this.#auth,
        logger,
        agent: this.#carrier.agent,
        getMessage: deps.getMessage,
        cachedGroupMetadata: deps.cachedGroupMetadata,
        makeSignalRepository: (...given) => this.#watched(deps.makeSignalRepository(...given)),
      }),
    );
    limitPhoneRequests(this.socket, deps.clock);
    guardListeners(this.socket, (err) => logger.error({ err }, 'listener failed'));
    this.#attached = this.#attach();
    this.#listen();
  }

  /** The phone confirmed the pairing during this connection. */
  get isPaired(): boolean {
    return this.#isPaired;
  }

  /** Ends it for a reason of our own; undefined: nobody needs to know. */
  end(cause: WhatsAppCause | undefined): void {
    this.#cause ??= cause;
    this.socket.end(undefined).catch((error) => {
      this.#deps.log.warn('whatsapp connection ended badly', { error });
    });
  }

  /** A socket that nobody attended to must not live on. */
  #attach(): Disposable {
    try {
      return this.#deps.onSocket(this.socket);
    } catch (error) {
      this.end(undefined);
      this.#carrier.cut();
      throw error;
    }
  }

  #listen(): void {
    const { ws, ev } = this.socket;
    ws.on('frame', () => this.#events.onFrame());
    ws.on(ACK_EVENT, ({ attrs }: BinaryNode) => {
      if (attrs['error'] === undefined) this.#events.onMessage();
    });
    ev.on('creds.update', (update) => this.#onCreds(update.account != null));
    ev.on('connection.update', (update) => {
      if (update.qr !== undefined) this.#onQr(update.qr);
      if (update.isNewLogin) {
        this.#isPaired = true;
        this.#events.onPaired();
      }
      if (update.connection === 'open' && this.#phase === 'opening') {
        this.#phase = 'open';
        this.#events.onOpen();
      }
      if (update.receivedPendingNotifications) this.#events.onCaughtUp();
      if (update.connection === 'close') this.#finish(update.lastDisconnect?.error);
    });
    // Turns a missed call into a message, in a listener of which nobody catches what it throws.
    ev.removeAllListeners('call');
  }

  #onQr(text: string): void {
    const lifetimeMs = this.#qrCount === 0 ? FIRST_QR_MS : NEXT_QR_MS;
    this.#qrCount += 1;
    this.#events.onQr(text, this.#deps.clock.now() + lifetimeMs);
  }

  /** Until the phone has confirmed there is nothing worth keeping. */
  #onCreds(hasAccount: boolean): void {
    if (this.#auth.creds.account === undefined) return;
    const saving = this.#deps.vault.save();
    // The confirmation goes out behind the save: a phone that thinks we are linked is right.
    if (!this.#wasLinked && hasAccount) this.#carrier.holdDuring(saving);
    const settled = saving.catch((error) => {
      this.#deps.log.error('whatsapp credentials not stored', { error });
      this.end({ kind: 'unsaved' });
    });
    this.#saving.add(settled);
    settled.finally(() => this.#saving.delete(settled));
  }

  /** The library closes its repository first of all when it ends a connection. */
  #watched(repository: ReturnType<SocketConfig['makeSignalRepository']>) {
    const { close, decryptMessage, decryptGroupMessage } = repository;
    const count = (error: unknown) => {
      const isUnread = !(error instanceof ChannelError) && !READ_BEFORE.test(String(error));
      if (isUnread) this.#events.onUndecryptable();
      throw error;
    };
    const read = (plaintext: Uint8Array) => {
      this.#events.onMessage();
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
    if (this.#phase === 'over') return;
    if (this.#phase === 'open') this.#fallbackCode = UNKNOWN_CODE;
    this.#phase = 'ending';
    this.#events.onEnding();
    this.#timer = this.#deps.clock.timer(CLOSING_MS, () => {
      this.#carrier.cut();
      this.#timer = this.#deps.clock.timer(LAST_WORD_MS, () => this.#finish(undefined));
    });
  }

  #finish(error: unknown): void {
    if (this.#phase === 'over') return;
    this.#phase = 'over';
    this.#timer?.[Symbol.dispose]();
    const { ws } = this.socket;
    const gone = new ChannelError('whatsapp_closed', 'the connection to WhatsApp is closed', {
      remedy: BACKOFF,
    });
    // The library forgets queries under way, which then wait for a deadline of their own.
    ws.emit('error', gone);
    this.#attached[Symbol.dispose]();
    ws.removeAllListeners();
    // A late one without a listener would be thrown.
    ws.on('error', () => undefined);
    this.#carrier.cut();
    const cause = this.#cause ?? causeOf(error, this.#fallbackCode);
    Promise.allSettled(this.#saving).then(() => this.#resolve(cause));
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

// The connections that the library opens, reached through its agent options. The one under a socket is cut
// where the closing handshake hangs, and held back while fresh credentials become durable. Those of uploads
// go to WhatsApp's own hosts alone.

export interface Carrier {
  readonly agent: Agent;
  /** Nothing more leaves until the work is done; where it fails, the connection is cut instead. */
  holdDuring(work: Promise<unknown>): void;
  /** Ends the connection without asking the other side. */
  cut(): void;
}

export function createCarrier(url: URL): Carrier {
  // Said here because an environment variable could otherwise switch the check off.
  const agent = url.protocol === 'wss:' ? new Agent({ rejectUnauthorized: true }) : plainAgent();
  const connect = agent.createConnection.bind(agent);
  const lines = new Set<Duplex>();
  agent.createConnection = (options, callback) => {
    const line = connect(options, callback);
    if (line) {
      lines.add(line);
      line.once('close', () => lines.delete(line));
    }
    return line;
  };
  const cut = () => {
    for (const line of lines) line.destroy();
  };
  return {
    agent,
    cut,
    holdDuring(work) {
      const held = [...lines];
      for (const line of held) line.cork();
      work.then(() => {
        for (const line of held) line.uncork();
      }, cut);
    },
  };
}

/** On loopback there is no TLS; the library's type knows the other kind only. */
function plainAgent(): Agent {
  return new PlainAgent() as Agent;
}

const MEDIA_HOSTS = /(?:^|\.)whatsapp\.net$/i;

/**
 * For uploads. The library follows redirects, also to hosts of others and without TLS: those get nothing.
 * @param socket where the account is connected: on this machine, its media host is there too
 */
export function createUploadAgent(socket: URL): Agent {
  const agent = new Agent({ rejectUnauthorized: true });
  const connect = agent.createConnection.bind(agent);
  const isAllowed = (host: string) =>
    isLoopbackHost(socket.hostname) ? host === socket.hostname : MEDIA_HOSTS.test(host);
  agent.createConnection = (options, callback) => {
    if (isAllowed(options.host ?? '')) return connect(options, callback);
    throw new Error('an upload leads to a host that is not WhatsApp’s');
  };
  return agent;
}

// The options every socket of ours is made with, and which addresses it may connect to. TLS is the
// only thing that authenticates WhatsApp's server: certificate checks are never switched off, and
// an unencrypted connection stays on this machine.

type SocketParts = Pick<SocketConfig, 'auth' | 'logger'> &
  Pick<ConnectionDeps, 'url' | 'getMessage' | 'cachedGroupMetadata' | 'makeSignalRepository'> & {
    readonly agent: NonNullable<SocketConfig['agent']>;
  };

const { HistorySyncType } = proto.HistorySync;

/** @throws ChannelError with remedy `never` for an address that is not allowed. */
export function parseSocketUrl(text: string): URL {
  const url = URL.parse(text);
  if (url?.protocol === 'wss:') return url;
  if (url?.protocol === 'ws:' && isLoopbackHost(url.hostname)) return url;
  const problem = 'channels.whatsapp.socketUrl must be wss:, or ws: on a loopback address';
  throw new ChannelError('whatsapp_settings', problem, { remedy: NEVER });
}

/** Reference section 6. What is left out keeps the library's default, its client version as well. */
export function socketOptions(parts: SocketParts): UserFacingSocketConfig {
  return {
    waWebSocketUrl: parts.url,
    auth: parts.auth,
    logger: parts.logger,
    agent: parts.agent,
    fetchAgent: createUploadAgent(parts.url),
    getMessage: parts.getMessage,
    cachedGroupMetadata: parts.cachedGroupMetadata,
    makeSignalRepository: parts.makeSignalRepository,
    // Else the owner's phone would no longer ring.
    markOnlineOnConnect: false,
    syncFullHistory: false,
    shouldSyncHistoryMessage: wantsHistory,
    generateHighQualityLinkPreview: false,
    // After each message that could not be read the library waits for so long and takes in no other: by
    // its default a flood from one person silences everybody. Without any wait it starves all timers.
    retryRequestDelayMs: 1,
  };
}

/**
 * The first sync tells which LID is which number; recent chats are megabytes of no use to us. Asked
 * about them before any came (then no file is named), the library only wants to know whether to
 * wait for the first sync, which brings our own name.
 */
function wantsHistory(notice: proto.Message.IHistorySyncNotification): boolean {
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

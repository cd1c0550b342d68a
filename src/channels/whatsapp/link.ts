// The one owner of the WhatsApp connection: makes it, waits when it is over, never has two at once,
// and lets a person link the account. What an ending leads to is in ended-connections.ts, what
// arrives is for ledger and inbox.

import type { SocketConfig, WASocket } from '@whiskeysockets/baileys';
import { ChannelError } from '../../kernel/message/errors.ts';
import { type Change, createChange } from '../../lib/async.ts';
import type { ChannelHost } from '../channel.ts';
import { quietConsole } from './baileys-logger.ts';
import { parseSocketUrl } from './connection.ts';
import { EndedConnections } from './ended-connections.ts';
import { LinkStatus, type PassingTrouble } from './link-status.ts';
import { LiveConnection, type LiveEvents } from './live-connection.ts';
import { createLoginDesk, type LoginAttempt, type LoginDesk, pairingEvents } from './login.ts';
import type { WhatsAppConfig } from './settings.ts';
import type { Vault } from './vault.ts';

export type LinkDeps = {
  readonly vault: Vault;
  readonly ledger: { stalledMs(): number | undefined };
  readonly settings: Pick<WhatsAppConfig, 'socketUrl' | 'phoneNumber'>;
  readonly host: Pick<ChannelHost, 'report' | 'alert' | 'clock' | 'log' | 'state'>;
  /** 0 to 1; spreads the waits between tries. */
  readonly random: () => number;
  readonly getMessage: SocketConfig['getMessage'];
  readonly cachedGroupMetadata: SocketConfig['cachedGroupMetadata'];
  readonly makeSignalRepository: SocketConfig['makeSignalRepository'];
  /** Called for each socket before it can deliver anything. */
  onSocket(socket: WASocket): Disposable;
  /** Told whenever `socket` is there, or gone. */
  onReady(isReady: boolean): void;
};

const STOPPED = { reason: 'the channel stopped', remedy: 'Start the gateway and try again.' };

export class Link {
  readonly login: LoginDesk;
  readonly #deps: LinkDeps;
  readonly #status: LinkStatus;
  readonly #endings: EndedConnections;
  readonly #change = createChange();
  #live: LiveConnection | undefined;
  #confirming: Promise<void> | undefined;
  /** Why nothing is tried until a person acts. */
  #standstill: { readonly reason: string; readonly remedy: string } | undefined;

  constructor(deps: LinkDeps) {
    this.#deps = deps;
    const { clock, log } = deps.host;
    this.#status = new LinkStatus(deps);
    this.#endings = new EndedConnections({ ...deps, clock, log, status: this.#status });
    const { phoneNumber } = deps.settings;
    this.login = createLoginDesk({ phoneNumber, onChange: () => this.#onLogin() });
  }

  /** The open socket, where there is one right now. */
  get socket(): WASocket | undefined {
    return this.#live?.socket;
  }

  /** From connecting until the server has delivered what waited for us (or never says so). */
  get isCatchingUp(): boolean {
    return this.#live?.isCatchingUp ?? false;
  }

  /** The open socket; waits for one. @throws the signal's reason */
  async open(signal: AbortSignal): Promise<WASocket> {
    for (;;) {
      signal.throwIfAborted();
      if (this.socket !== undefined) return this.socket;
      await this.#change.next(signal);
    }
  }

  /** @throws the signal's reason */
  async caughtUp(signal: AbortSignal): Promise<void> {
    while (this.isCatchingUp) await this.#change.next(signal);
  }

  /** Reports this instead of an open connection, until called with undefined. */
  noteTrouble(trouble: PassingTrouble | undefined): void {
    this.#status.trouble(trouble);
  }

  /** Connects and stays connected until aborted; waits while there is nothing to connect with. */
  async run(signal: AbortSignal): Promise<void> {
    const url = this.#url();
    const quiet = quietConsole();
    try {
      await this.#status.load();
      while (!signal.aborted) await this.#round(url, signal);
    } finally {
      this.login.close(STOPPED.reason);
      quiet[Symbol.dispose]();
      await this.#confirming;
      if (quiet.dropped > 0) {
        this.#deps.host.log.debug('libsignal console output dropped', { count: quiet.dropped });
      }
      await this.#status.flush();
    }
  }

  /** @throws ChannelError with remedy `never` */
  #url(): URL {
    try {
      return parseSocketUrl(this.#deps.settings.socketUrl);
    } catch (error) {
      if (error instanceof ChannelError) {
        this.#status.stopped(error.message, 'Correct channels.whatsapp.socketUrl.');
      }
      throw error;
    }
  }

  /** One connection with what follows it, or a wait for somebody to log in. */
  async #round(url: URL, signal: AbortSignal): Promise<void> {
    const attempt = this.login.current;
    const isPairing = this.#deps.vault.account === undefined;
    if (attempt === undefined && (isPairing || this.#standstill !== undefined)) {
      if (this.#standstill === undefined) this.#status.notLinked();
      else this.#status.stopped(this.#standstill.reason, this.#standstill.remedy);
      return this.#change.next(signal).catch(() => undefined);
    }
    this.#standstill = undefined;
    if (attempt !== undefined && isPairing) await this.#pair(url, attempt, signal);
    else await this.#connect(url, undefined, signal);
  }

  /** An attempt that is given up meanwhile ends when nothing half made is left of it. */
  async #pair(url: URL, attempt: LoginAttempt, signal: AbortSignal): Promise<void> {
    attempt.hold();
    try {
      await this.#connect(url, attempt, signal);
    } finally {
      const isOver = signal.aborted || attempt.signal.aborted;
      if (isOver) await this.#endings.cleanHalfMade();
      attempt.release(signal.aborted ? STOPPED : undefined);
    }
  }

  /** Until the time is over, or a login begins or is given up. */
  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    const waits = [this.#deps.host.clock.sleep(ms, either), this.#change.next(either)];
    await Promise.race(waits).catch(() => undefined);
    over.abort();
    await Promise.allSettled(waits);
  }

  /** Until it is time for the next connection. `pairing`: the login that wants an account. */
  async #connect(url: URL, pairing: LoginAttempt | undefined, signal: AbortSignal): Promise<void> {
    const live = this.#begin(url, pairing);
    const stop = () => live.end();
    const giveUp = () => {
      if (!live.isPaired) live.end();
    };
    signal.addEventListener('abort', stop, { once: true });
    pairing?.signal.addEventListener('abort', giveUp, { once: true });
    const cause = await live.closed();
    signal.removeEventListener('abort', stop);
    pairing?.signal.removeEventListener('abort', giveUp);
    this.#live = undefined;
    if (signal.aborted || (pairing?.signal.aborted && !live.isPaired)) return;
    const attempt = this.login.current;
    const { phase, isPaired, openMs, hasCarried } = live;
    const ended = { cause, phase, isPaired, openMs, hasCarried, attempt };
    const step = await this.#endings.after(ended);
    if (step.kind === 'stand_still') this.#standstill = step;
    // Who logged in meanwhile is not kept waiting.
    else if (step.inMs > 0 && this.login.current === attempt) await this.#pause(step.inMs, signal);
  }

  #begin(url: URL, pairing: LoginAttempt | undefined): LiveConnection {
    const { host, ...deps } = this.#deps;
    const { clock, log } = host;
    if (pairing === undefined) this.#status.connecting();
    else this.#status.degraded('waiting for a phone to confirm the link');
    const events: LiveEvents = {
      ...pairingEvents(pairing, { log, socket: () => live.rawSocket }),
      onOpen: () => this.#onOpen(),
      onFrame: () => this.#status.frame(),
      onUndecryptable: () => this.#status.undecryptable(),
    };
    const change: Change = {
      ...this.#change,
      notify: () => {
        this.#change.notify();
        deps.onReady(this.socket !== undefined);
      },
    };
    const live = new LiveConnection({ ...deps, url, clock, log, change }, events);
    this.#live = live;
    return live;
  }

  #onOpen(): void {
    const { vault, host } = this.#deps;
    this.#endings.opened();
    this.#status.opened();
    this.#settleLogin();
    this.#confirming = vault.confirm().catch((error) => {
      host.log.error('whatsapp credentials not stored', { error });
      this.#live?.end({ kind: 'unsaved' });
    });
  }

  /** A login began or was given up. */
  #onLogin(): void {
    const { account } = this.#deps.vault;
    const attempt = this.login.current;
    if (this.socket !== undefined) this.#settleLogin();
    else if (attempt !== undefined) {
      this.#endings.askedAnew();
      const goal = account === undefined ? '' : ` as +${account.number}`;
      attempt.show({ kind: 'progress', text: `Connecting to WhatsApp${goal}.` });
    }
    this.#change.notify();
  }

  #settleLogin(): void {
    this.login.current?.done(`+${this.#deps.vault.account?.number ?? ''}`);
  }
}

// The only owner of the WhatsApp connection: opens it, waits after its end, never has two at once,
// and lets a person link the account. The second part decides what an ending leads to; ledger and
// inbox handle what arrives.

import type { WASocket } from '@whiskeysockets/baileys';
import { ChannelError } from '../../kernel/message/errors.ts';
import { createChange } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import { backoffMs } from '../../lib/time/clock.ts';
import type { ChannelHost } from '../channel.ts';
import { Connection, type EndedConnection, type SocketParts } from './connection.ts';
import { LinkStatus, type PassingTrouble } from './link-status.ts';
import {
  createLoginService,
  type LoginAttempt,
  type LoginService,
  pairingEvents,
} from './login.ts';
import { judgeEnding, type WhatsAppVerdict } from './rules/endings.ts';
import type { WhatsAppConfig } from './settings.ts';
import { parseSocketUrl, quietConsole } from './transport.ts';
import type { Vault } from './vault.ts';

type LinkDeps = SocketParts & {
  readonly vault: Vault;
  readonly settings: Pick<WhatsAppConfig, 'socketUrl' | 'phoneNumber' | 'proxy'>;
  readonly host: Pick<ChannelHost, 'report' | 'alert' | 'clock' | 'log' | 'state'>;
  /** 0 to 1; spreads the waits between tries. */
  readonly random: () => number;
  /** Reports whether `socket` is defined. */
  onReady(isReady: boolean): void;
};

const STOPPED = { reason: t`the channel stopped`, remedy: t`Start the gateway and try again.` };

export class Link {
  readonly login: LoginService;
  readonly #deps: LinkDeps;
  readonly #status: LinkStatus;
  readonly #endings: EndedConnections;
  readonly #change = createChange();
  #connection: Connection | undefined;
  #confirming: Promise<void> | undefined;
  /** Why nothing is tried until a person acts. */
  #standstill: Trouble | undefined;

  constructor(deps: LinkDeps) {
    this.#deps = deps;
    const { clock, log } = deps.host;
    this.#status = new LinkStatus(deps);
    this.#endings = new EndedConnections({ ...deps, clock, log, status: this.#status });
    const { phoneNumber } = deps.settings;
    this.login = createLoginService({ phoneNumber, onChange: () => this.#onLogin() });
  }

  /** The open socket, if there is one. */
  get socket(): WASocket | undefined {
    return this.#connection?.openSocket;
  }

  /** From connecting until the waiting messages are delivered, or the marker is overdue. */
  get isCatchingUp(): boolean {
    return this.#connection?.isCatchingUp ?? false;
  }

  /** Waits for the open socket. @throws the signal's reason */
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

  /** Connects and stays connected until aborted; waits while there are no credentials. */
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
        this.#status.stopped(error.message, t`Correct channels.whatsapp.socketUrl.`);
      }
      throw error;
    }
  }

  /** One connection and the wait after it, or a wait for a login. */
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

  /** An attempt that is aborted meanwhile ends after its cleanup. */
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

  /** Waits until the time is over, or a login begins or is given up. */
  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    const waits = [this.#deps.host.clock.sleep(ms, either), this.#change.next(either)];
    await Promise.race(waits).catch(() => undefined);
    over.abort();
    await Promise.allSettled(waits);
  }

  /** Runs one connection until the next one is due. `pairing`: the login that links an account. */
  async #connect(url: URL, pairing: LoginAttempt | undefined, signal: AbortSignal): Promise<void> {
    const connection = this.#begin(url, pairing);
    const isGivenUp = () => pairing?.signal.aborted === true && !connection.isPaired;
    const stop = () => {
      if (signal.aborted || isGivenUp()) connection.end();
    };
    const either = [signal, pairing?.signal];
    for (const one of either) one?.addEventListener('abort', stop, { once: true });
    const ended = await connection.closed;
    for (const one of either) one?.removeEventListener('abort', stop);
    this.#connection = undefined;
    if (signal.aborted || isGivenUp()) return;
    const attempt = this.login.current;
    const step = await this.#endings.after(ended, attempt);
    if ('standstill' in step) this.#standstill = step.standstill;
    // A person who logged in meanwhile does not wait.
    else if (step.inMs > 0 && this.login.current === attempt) await this.#pause(step.inMs, signal);
  }

  #begin(url: URL, pairing: LoginAttempt | undefined): Connection {
    const { host, ...deps } = this.#deps;
    const { clock, log } = host;
    if (pairing === undefined) this.#status.connecting();
    else this.#status.degraded(t`waiting for the phone to confirm the link`);
    const connection = new Connection(
      { ...deps, url, proxy: deps.settings.proxy, clock, log },
      {
        ...pairingEvents(pairing, { log, socket: () => connection.socket }),
        onOpen: () => this.#onOpen(),
        onFrame: () => this.#status.frame(),
        onUndecryptable: () => this.#status.undecryptable(),
        onChange: () => {
          this.#change.notify();
          deps.onReady(this.socket !== undefined);
        },
      },
    );
    this.#connection = connection;
    return connection;
  }

  #onOpen(): void {
    const { vault, host } = this.#deps;
    this.#endings.opened();
    this.#status.opened();
    this.#settleLogin();
    this.#confirming = vault.confirm().catch((error) => {
      host.log.error('whatsapp credentials not stored', { error });
      this.#connection?.end({ kind: 'unsaved' });
    });
  }

  /** A login began or was given up. */
  #onLogin(): void {
    const { account } = this.#deps.vault;
    const attempt = this.login.current;
    if (this.socket !== undefined) {
      const number = account?.number ?? '';
      const isOther = attempt?.phoneNumber !== undefined && attempt.phoneNumber !== number;
      if (isOther) attempt.show({ kind: 'progress', text: linkedAlready(number) });
      this.#settleLogin();
    } else if (attempt !== undefined) {
      this.#endings.askedAnew();
      const goal = account === undefined ? '' : ` as +${account.number}`;
      attempt.show({ kind: 'progress', text: t`Connecting to WhatsApp${goal}.` });
    }
    this.#change.notify();
  }

  #settleLogin(): void {
    const account = `+${this.#deps.vault.account?.number ?? ''}`;
    this.login.current?.show({ kind: 'done', account });
  }
}

const linkedAlready = (number: string) =>
  t`+${number} is linked already. To link another number, remove this device on that phone first.`;

// Carries out the decision about a connection that ended: credentials are rolled back, set aside or
// cleaned, the owner gets a notice, and the wait before the next connection is chosen.

/** Case W12: waits of 2 s to 5 min; a wait is drawn from the upper half of its ceiling. */
const PACES = {
  backoff: { minMs: 4000, maxMs: 300_000 },
  long_backoff: { minMs: 60_000, maxMs: 300_000 },
} as const;
/** A connection open this long worked: earlier failures no longer count. */
const STABLE_MS = 60_000;
/** When a connection has been open this long, problems that were reported are over. */
const NEWS_AFTER_MS = 600_000;
/** A person holds the phone meanwhile. */
const MAX_PAIRING_TRIES = 5;

type EndedDeps = Pick<ChannelHost, 'clock' | 'log'> & {
  readonly vault: Vault;
  readonly status: LinkStatus;
  /** 0 to 1. */
  readonly random: () => number;
};

export type Trouble = { readonly reason: string; readonly remedy: string };

/** The wait before the next connection, or why there is none until a person acts. */
type NextStep = { readonly inMs: number } | { readonly standstill: Trouble };

class EndedConnections {
  readonly #deps: EndedDeps;
  /** Consecutive connections that did not last. */
  #failures = 0;
  #hasRolledBack = false;

  constructor(deps: EndedDeps) {
    this.#deps = deps;
  }

  /** A person asks for a connection: earlier failures cause no wait. */
  askedAnew(): void {
    this.#failures = 0;
  }

  opened(): void {
    this.#hasRolledBack = false;
  }

  /** `attempt`: the login that waits for the outcome. */
  async after(ended: EndedConnection, attempt: LoginAttempt | undefined): Promise<NextStep> {
    const { status, log } = this.#deps;
    const { cause, phase, isPaired } = ended;
    if (ended.openMs >= NEWS_AFTER_MS) status.forget();
    const verdict = await this.#verdict(ended);
    if (hasWorked(ended, verdict)) this.#failures = 0;
    const code = cause.kind === 'closed' ? cause.code : cause.kind;
    log.info('whatsapp connection ended', { code, phase, next: verdict.kind });
    status.ended(ended, verdict.reason);
    const isUnpaired = phase === 'pairing' && !isPaired;
    if (isUnpaired) await this.cleanHalfMade();
    switch (verdict.kind) {
      case 'reconnect':
        return this.#reconnect(verdict.reason, isPaired, attempt);
      // Once until a connection opens.
      case 'roll_back':
        return this.#atOnce();
      case 'wait':
        return this.#wait(verdict, isUnpaired, attempt);
      case 'give_up':
        attempt?.fail(verdict.reason, verdict.remedy);
        return { inMs: 0 };
      case 'stop':
        return this.#standStill(verdict, attempt);
      case 'relink':
        return this.#relink(verdict, attempt);
    }
  }

  /** Deletes credentials of an unfinished pairing: with them a login would be refused. */
  async cleanHalfMade(): Promise<void> {
    const { vault } = this.#deps;
    if (vault.account === undefined && vault.auth.creds.me !== undefined) await vault.reset();
  }

  async #verdict(ended: EndedConnection): Promise<WhatsAppVerdict> {
    const { vault, log } = this.#deps;
    const verdict = judgeEnding({ ...ended, mayRollBack: !this.#hasRolledBack });
    if (verdict.kind !== 'roll_back') return verdict;
    this.#hasRolledBack = true;
    if (!(await vault.rollBack())) return judgeEnding({ ...ended, mayRollBack: false });
    log.warn('whatsapp credentials rolled back', { generation: vault.health().generation });
    return verdict;
  }

  /** At once only after a stable period, or when a phone has confirmed. */
  #reconnect(reason: string, isPaired: boolean, attempt: LoginAttempt | undefined): NextStep {
    const isAtOnce = this.#failures === 0 || isPaired;
    if (!isPaired) this.#failures += 1;
    return isAtOnce ? this.#atOnce() : this.#connectLater('backoff', reason, attempt);
  }

  #atOnce(): NextStep {
    this.#deps.status.starting();
    return { inMs: 0 };
  }

  #wait(
    { pace, reason, alertAfter }: Extract<WhatsAppVerdict, { readonly kind: 'wait' }>,
    isUnpaired: boolean,
    attempt: LoginAttempt | undefined,
  ): NextStep {
    this.#failures += 1;
    if (isUnpaired && this.#failures >= MAX_PAIRING_TRIES) {
      attempt?.fail(reason, t`Try again later.`);
      return { inMs: 0 };
    }
    if (alertAfter !== undefined && this.#failures >= alertAfter && attempt === undefined) {
      this.#deps.status.alert(reason, t`The gateway keeps trying.`);
    }
    return this.#connectLater(pace, reason, attempt);
  }

  #connectLater(
    pace: keyof typeof PACES,
    reason: string,
    attempt: LoginAttempt | undefined,
  ): NextStep {
    const { random, status, clock } = this.#deps;
    const inMs = backoffMs(this.#failures, { ...PACES[pace], random });
    const secs = Math.ceil(inMs / 1000);
    attempt?.show({ kind: 'progress', text: t`${reason}; retrying in ${secs} s.` });
    status.degraded(reason, clock.now() + inMs);
    return { inMs };
  }

  async #relink(trouble: Trouble, attempt: LoginAttempt | undefined): Promise<NextStep> {
    await this.#deps.vault.reset();
    this.#failures = 0;
    if (attempt === undefined || attempt.isConfirmed) return this.#standStill(trouble, attempt);
    attempt.show({ kind: 'progress', text: t`${trouble.reason}. Linking again.` });
    return { inMs: 0 };
  }

  /** Reports to the person who links, or else to the owner. */
  #standStill({ reason, remedy }: Trouble, attempt: LoginAttempt | undefined): NextStep {
    if (attempt === undefined) {
      this.#deps.status.forget();
      this.#deps.status.alert(reason, remedy);
    } else attempt.fail(reason, remedy);
    return { standstill: { reason, remedy } };
  }
}

/** One that received nothing did not work; an immediate retry must not repeat per message. */
function hasWorked(ended: EndedConnection, { kind }: WhatsAppVerdict): boolean {
  if (ended.cause.kind === 'stalled') return false;
  return ended.openMs >= STABLE_MS || (ended.hasCarried && kind !== 'reconnect');
}

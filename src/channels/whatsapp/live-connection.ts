// A connection with its watchdogs (case W12), and its state at any time: how far it came, whether it may be
// used, whether messages from before it are still coming.

import type { WASocket } from '@whiskeysockets/baileys';
import type { Change } from '../../lib/async.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { Connection, type ConnectionDeps } from './connection.ts';
import type { WhatsAppCause, WhatsAppPhase } from './rules/endings.ts';

export type LiveDeps = ConnectionDeps & {
  readonly ledger: { stalledMs(): number | undefined };
  /** Told whenever `socket` or `isCatchingUp` changed. */
  readonly change: Change;
};

/** None may throw. */
export type LiveEvents = {
  /** `expiresAt`: epoch milliseconds. */
  onQr(text: string, expiresAt: number): void;
  onPaired(): void;
  onOpen(): void;
  onFrame(): void;
  onUndecryptable(): void;
};

export class LiveConnection {
  readonly isPairing: boolean;
  readonly #deps: LiveDeps;
  readonly #events: LiveEvents;
  readonly #watch: Watchdogs;
  readonly #connection: Connection;
  #isUsable = false;
  #isCatchingUp = true;
  #openedAt: number | undefined;
  #hasCarried = false;

  constructor(deps: LiveDeps, events: LiveEvents) {
    this.#deps = deps;
    this.#events = events;
    this.isPairing = deps.vault.account === undefined;
    // First: a connection that cannot be made must not leave a watch behind.
    this.#connection = new Connection(deps, {
      ...events,
      onOpen: () => this.#onOpen(),
      onMessage: () => {
        this.#hasCarried = true;
      },
      onCaughtUp: () => this.#caughtUp(),
      onFrame: () => this.#onFrame(),
      onEnding: () => this.#onEnding(),
    });
    this.#watch = startWatchdogs({
      clock: deps.clock,
      isPairing: this.isPairing,
      stalledMs: () => deps.ledger.stalledMs(),
      onTrouble: (kind) => this.end({ kind }),
      onMarkerMissing: () => this.#onMarkerMissing(),
    });
  }

  /** Whatever its state. */
  get rawSocket(): WASocket {
    return this.#connection.socket;
  }

  /** Open and not yet about to end. */
  get socket(): WASocket | undefined {
    return this.#isUsable ? this.#connection.socket : undefined;
  }

  get isCatchingUp(): boolean {
    return this.#isCatchingUp;
  }

  get isPaired(): boolean {
    return this.#connection.isPaired;
  }

  /** How far it came, also after its end. */
  get phase(): WhatsAppPhase {
    if (this.#openedAt !== undefined) return 'open';
    return this.isPairing ? 'pairing' : 'opening';
  }

  /** Since when it is, or was, open: milliseconds until now. */
  get openMs(): number {
    return this.#openedAt === undefined ? 0 : this.#deps.clock.monotonic() - this.#openedAt;
  }

  /** A message came or went through. */
  get hasCarried(): boolean {
    return this.#hasCarried;
  }

  /** Resolves, never rejects, when nothing of it is left. */
  async closed(): Promise<WhatsAppCause> {
    const cause = await this.#connection.closed;
    this.#watch[Symbol.dispose]();
    this.#onEnding();
    return cause;
  }

  end(cause?: WhatsAppCause): void {
    this.#connection.end(cause);
  }

  #onOpen(): void {
    this.#openedAt = this.#deps.clock.monotonic();
    this.#isUsable = true;
    this.#watch.opened();
    this.#events.onOpen();
    this.#deps.change.notify();
  }

  #onFrame(): void {
    this.#watch.frame();
    this.#events.onFrame();
  }

  #onMarkerMissing(): void {
    if (!this.#isCatchingUp) return;
    this.#deps.log.warn('whatsapp never said that all waiting messages were delivered');
    // The library holds its own events back until that marker.
    this.#connection.socket.ev.flush();
    this.#caughtUp();
  }

  #onEnding(): void {
    this.#isUsable = false;
    this.#caughtUp();
  }

  #caughtUp(): void {
    this.#isCatchingUp = false;
    this.#deps.change.notify();
  }
}

// Looks after one connection from its making on (case W12): a login that does not come about, a
// transport on which nothing comes, messages that come but reach nobody, and an offline marker that
// stays out (case W03).

/** Three of the library's keep-alives, each of which the server answers. */
const SILENCE_MS = 90_000;
const LOGIN_MS = 90_000;
/** The library shows QR codes for 160 s. */
const PAIRING_MS = 180_000;
const STALL_MS = 60_000;
/** The library gives its own buffer 30 s. */
const MARKER_MS = 35_000;
const LOOK_EVERY_MS = 5000;

export type WatchdogDeps = {
  readonly clock: Clock;
  readonly isPairing: boolean;
  /** While messages wait to be taken in: milliseconds without any of them coming through. */
  stalledMs(): number | undefined;
  /** Called once, then the watch is over. */
  onTrouble(kind: 'silent' | 'stalled' | 'overdue'): void;
  onMarkerMissing(): void;
};

export interface Watchdogs extends Disposable {
  frame(): void;
  opened(): void;
}

export function startWatchdogs(deps: WatchdogDeps): Watchdogs {
  const { clock } = deps;
  const startedAt = clock.monotonic();
  const timers = new DisposableStack();
  let frameAt = startedAt;
  let isOpen = false;
  let look: Disposable;

  function troubleAt(now: number): 'silent' | 'stalled' | 'overdue' | undefined {
    const limitMs = deps.isPairing ? PAIRING_MS : LOGIN_MS;
    if (!isOpen && now - startedAt >= limitMs) return 'overdue';
    if (now - frameAt >= SILENCE_MS) return 'silent';
    return isOpen && (deps.stalledMs() ?? 0) >= STALL_MS ? 'stalled' : undefined;
  }

  function arm(): void {
    look = clock.timer(LOOK_EVERY_MS, () => {
      const trouble = troubleAt(clock.monotonic());
      if (trouble === undefined) arm();
      else deps.onTrouble(trouble);
    });
  }

  arm();
  timers.defer(() => look[Symbol.dispose]());
  return {
    frame() {
      frameAt = clock.monotonic();
    },
    opened() {
      isOpen = true;
      timers.use(clock.timer(MARKER_MS, deps.onMarkerMissing));
    },
    [Symbol.dispose]: () => timers.dispose(),
  };
}

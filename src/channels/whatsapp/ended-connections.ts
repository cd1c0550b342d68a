// Carries out the decision about a connection that ended: credentials are rolled back, set aside or cleaned,
// the owner is told, and the wait before the next connection begins.

import type { Logger } from '../../lib/logger.ts';
import { backoffMs, type Clock } from '../../lib/time/clock.ts';
import type { LinkStatus } from './link-status.ts';
import type { LoginAttempt } from './login.ts';
import {
  judgeEnding,
  type WhatsAppCause,
  type WhatsAppPhase,
  type WhatsAppVerdict,
} from './rules/endings.ts';
import type { Vault } from './vault.ts';

/** Case W12: waits of 2 s to 5 min; a wait is drawn from the upper half of its ceiling. */
const BACKOFF = { minMs: 4000, maxMs: 300_000 };
const LONG_BACKOFF = { minMs: 60_000, maxMs: 300_000 };
/** Open for this long, a connection worked: the failures before count no more. */
const STABLE_MS = 60_000;
/** Open for this long, what the owner was told before is over. */
const NEWS_AFTER_MS = 600_000;
/** Nobody wants to stand longer with the phone in the hand. */
const MAX_PAIRING_TRIES = 5;

export type EndedDeps = {
  readonly vault: Vault;
  readonly status: LinkStatus;
  readonly clock: Clock;
  readonly log: Logger;
  /** 0 to 1. */
  readonly random: () => number;
};

export type EndedConnection = {
  readonly cause: WhatsAppCause;
  readonly phase: WhatsAppPhase;
  readonly isPaired: boolean;
  /** How long it was open, milliseconds. */
  readonly openMs: number;
  /** A message came or went through. */
  readonly hasCarried: boolean;
  /** The login that waits for the outcome. */
  readonly attempt: LoginAttempt | undefined;
};

export type NextStep =
  | { readonly kind: 'connect'; readonly inMs: number }
  /** Nothing until a person acts. */
  | { readonly kind: 'stand_still'; readonly reason: string; readonly remedy: string };

export class EndedConnections {
  readonly #deps: EndedDeps;
  /** Connections in a row that did not last. */
  #failures = 0;
  #hasRolledBack = false;

  constructor(deps: EndedDeps) {
    this.#deps = deps;
  }

  /** A person asks for a connection: no wait for what went wrong before. */
  askedAnew(): void {
    this.#failures = 0;
  }

  opened(): void {
    this.#hasRolledBack = false;
  }

  async after(ended: EndedConnection): Promise<NextStep> {
    const { status, log } = this.#deps;
    const { cause, phase } = ended;
    if (ended.openMs >= NEWS_AFTER_MS) status.forget();
    const verdict = await this.#verdict(ended);
    if (hasWorked(ended, verdict)) this.#failures = 0;
    const code = cause.kind === 'closed' ? cause.code : cause.kind;
    log.info('whatsapp connection ended', { code, phase, next: verdict.kind });
    status.ended(cause, phase, verdict.reason);
    if (phase === 'pairing' && !ended.isPaired) await this.cleanHalfMade();
    return this.#follow(verdict, ended);
  }

  /** Credentials of a pairing that was begun and not completed: with them a login would be refused. */
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

  async #follow(verdict: WhatsAppVerdict, ended: EndedConnection): Promise<NextStep> {
    const { attempt } = ended;
    switch (verdict.kind) {
      case 'reconnect':
        return this.#reconnect(verdict.reason, ended);
      // Once until a connection opens.
      case 'roll_back':
        return this.#atOnce();
      case 'wait':
        return this.#wait(verdict, ended);
      case 'give_up':
        return this.#giveUp(verdict, attempt);
      case 'stop':
        this.#tell(verdict, attempt);
        return standStill(verdict);
      case 'relink':
        return this.#relink(verdict, attempt);
    }
  }

  /** At once, but not again and again: only after a while of peace, or when a phone has confirmed. */
  #reconnect(reason: string, ended: EndedConnection): NextStep {
    const isAtOnce = this.#failures === 0 || ended.isPaired;
    if (!ended.isPaired) this.#failures += 1;
    if (!isAtOnce) return this.#connectIn(this.#pauseMs(BACKOFF), reason, ended.attempt);
    return this.#atOnce();
  }

  #atOnce(): NextStep {
    this.#deps.status.starting();
    return { kind: 'connect', inMs: 0 };
  }

  #wait(
    verdict: Extract<WhatsAppVerdict, { readonly kind: 'wait' }>,
    ended: EndedConnection,
  ): NextStep {
    const { pace, reason, alertAfter } = verdict;
    const { attempt } = ended;
    this.#failures += 1;
    if (ended.phase === 'pairing' && !ended.isPaired && this.#failures >= MAX_PAIRING_TRIES) {
      return this.#giveUp({ reason, remedy: 'Try again later.' }, attempt);
    }
    if (alertAfter !== undefined && this.#failures >= alertAfter && attempt === undefined) {
      this.#deps.status.alert(reason, 'I keep trying.');
    }
    const pauseMs = this.#pauseMs(pace === 'backoff' ? BACKOFF : LONG_BACKOFF);
    return this.#connectIn(pauseMs, reason, attempt);
  }

  #giveUp(trouble: Trouble, attempt: LoginAttempt | undefined): NextStep {
    attempt?.fail(trouble.reason, trouble.remedy);
    return { kind: 'connect', inMs: 0 };
  }

  async #relink(trouble: Trouble, attempt: LoginAttempt | undefined): Promise<NextStep> {
    await this.#deps.vault.reset();
    this.#failures = 0;
    if (attempt === undefined || attempt.isConfirmed) {
      this.#tell(trouble, attempt);
      return standStill(trouble);
    }
    attempt.show({ kind: 'progress', text: `${trouble.reason}. Linking anew.` });
    return { kind: 'connect', inMs: 0 };
  }

  /** The person who links, or else the owner wherever they can be reached. */
  #tell({ reason, remedy }: Trouble, attempt: LoginAttempt | undefined): void {
    if (attempt !== undefined) {
      attempt.fail(reason, remedy);
      return;
    }
    this.#deps.status.forget();
    this.#deps.status.alert(reason, remedy);
  }

  #connectIn(inMs: number, reason: string, attempt: LoginAttempt | undefined): NextStep {
    const secs = Math.ceil(inMs / 1000);
    attempt?.show({ kind: 'progress', text: `${reason}; trying again in ${secs} s.` });
    this.#deps.status.degraded(reason, this.#deps.clock.now() + inMs);
    return { kind: 'connect', inMs };
  }

  #pauseMs(bounds: { readonly minMs: number; readonly maxMs: number }): number {
    return backoffMs(this.#failures, { ...bounds, random: this.#deps.random });
  }
}

/** One that took nothing in did not; what is repeated at once must not go on for every message. */
function hasWorked(ended: EndedConnection, { kind }: WhatsAppVerdict): boolean {
  if (ended.cause.kind === 'stalled') return false;
  return ended.openMs >= STABLE_MS || (ended.hasCarried && kind !== 'reconnect');
}

type Trouble = { readonly reason: string; readonly remedy: string };

const standStill = ({ reason, remedy }: Trouble): NextStep => ({
  kind: 'stand_still',
  reason,
  remedy,
});

// Carries out the decision about a connection that ended: credentials are rolled back, set aside or cleaned,
// the owner is told, and the wait before the next connection is chosen.

import { backoffMs } from '../../lib/time/clock.ts';
import type { ChannelHost } from '../channel.ts';
import type { EndedConnection } from './connection.ts';
import type { LinkStatus } from './link-status.ts';
import type { LoginAttempt } from './login.ts';
import { judgeEnding, type WhatsAppVerdict } from './rules/endings.ts';
import type { Vault } from './vault.ts';

/** Case W12: waits of 2 s to 5 min; a wait is drawn from the upper half of its ceiling. */
const PACES = {
  backoff: { minMs: 4000, maxMs: 300_000 },
  long_backoff: { minMs: 60_000, maxMs: 300_000 },
} as const;
/** Open for this long, a connection worked: the failures before count no more. */
const STABLE_MS = 60_000;
/** Open for this long, what the owner was told before is over. */
const NEWS_AFTER_MS = 600_000;
/** Nobody wants to stand longer with the phone in the hand. */
const MAX_PAIRING_TRIES = 5;

type EndedDeps = Pick<ChannelHost, 'clock' | 'log'> & {
  readonly vault: Vault;
  readonly status: LinkStatus;
  /** 0 to 1. */
  readonly random: () => number;
};

export type Trouble = { readonly reason: string; readonly remedy: string };

/** The wait before the next connection in milliseconds, or why there is none until a person acts. */
type NextStep = { readonly inMs: number } | { readonly standstill: Trouble };

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

  /** At once, but not again and again: only after a while of peace, or when a phone has confirmed. */
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
      attempt?.fail(reason, 'Try again later.');
      return { inMs: 0 };
    }
    if (alertAfter !== undefined && this.#failures >= alertAfter && attempt === undefined) {
      this.#deps.status.alert(reason, 'I keep trying.');
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
    attempt?.show({ kind: 'progress', text: `${reason}; trying again in ${secs} s.` });
    status.degraded(reason, clock.now() + inMs);
    return { inMs };
  }

  async #relink(trouble: Trouble, attempt: LoginAttempt | undefined): Promise<NextStep> {
    await this.#deps.vault.reset();
    this.#failures = 0;
    if (attempt === undefined || attempt.isConfirmed) return this.#standStill(trouble, attempt);
    attempt.show({ kind: 'progress', text: `${trouble.reason}. Linking anew.` });
    return { inMs: 0 };
  }

  /** Tells the person who links, or else the owner wherever they can be reached. */
  #standStill({ reason, remedy }: Trouble, attempt: LoginAttempt | undefined): NextStep {
    if (attempt === undefined) {
      this.#deps.status.forget();
      this.#deps.status.alert(reason, remedy);
    } else attempt.fail(reason, remedy);
    return { standstill: { reason, remedy } };
  }
}

/** One that took nothing in did not; what is repeated at once must not go on for every message. */
function hasWorked(ended: EndedConnection, { kind }: WhatsAppVerdict): boolean {
  if (ended.cause.kind === 'stalled') return false;
  return ended.openMs >= STABLE_MS || (ended.hasCarried && kind !== 'reconnect');
}

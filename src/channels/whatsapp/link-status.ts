// What the link tells of itself: its status for the gateway, the row for doctor, and alerts for the
// owner on another channel, each trouble once.

import type { ChannelHost, ChannelStatus } from '../channel.ts';
import { createHealthRecord, type HealthRecord } from './link-health.ts';
import { LINK_REMEDY, type WhatsAppCause, type WhatsAppPhase } from './rules/endings.ts';
import type { Vault } from './vault.ts';

/** Frames come by the hundred. */
const ACTIVE_EVERY_MS = 1000;

export type StatusDeps = {
  readonly host: Pick<ChannelHost, 'report' | 'alert' | 'clock' | 'log' | 'state'>;
  readonly vault: Pick<Vault, 'account'>;
};

/** `retryAt`: epoch milliseconds. */
export type PassingTrouble = { readonly reason: string; readonly retryAt: number };

/** Baileys' close code for a device the account's phone removed. */
const LOGGED_OUT_CODE = 401;

export class LinkStatus {
  readonly #deps: StatusDeps;
  readonly #health: HealthRecord;
  /** Troubles the owner knows of. */
  readonly #told = new Set<string>();
  #activeAt: number | undefined;
  #last: ChannelStatus | undefined;
  #trouble: PassingTrouble | undefined;

  constructor(deps: StatusDeps) {
    this.#deps = deps;
    this.#health = createHealthRecord(deps.host);
  }

  load(): Promise<void> {
    return this.#health.load();
  }

  flush(): Promise<void> {
    return this.#health.flush();
  }

  starting(): void {
    this.#report({ kind: 'starting' });
  }

  /** PassingTrouble that was told stays until it is over. */
  connecting(): void {
    if (this.#last?.kind !== 'degraded') this.starting();
  }

  opened(): void {
    const { clock } = this.#deps.host;
    const { account } = this.#deps.vault;
    this.#running();
    this.#health.set({
      openedAt: clock.now(),
      ...(account === undefined ? {} : { linkedNumber: account.number }),
    });
  }

  /** Something came on the connection that was reported as open. */
  frame(): void {
    const now = this.#deps.host.clock.now();
    if (this.#activeAt === undefined || now - this.#activeAt < ACTIVE_EVERY_MS) return;
    this.#running();
  }

  degraded(reason: string, retryAt?: number): void {
    this.#report({ kind: 'degraded', reason, ...(retryAt === undefined ? {} : { retryAt }) });
  }

  /** Nothing is linked; why that is, is remembered over a restart. */
  notLinked(): void {
    const { lastEnding } = this.#health;
    const isLoggedOut = lastEnding?.code === LOGGED_OUT_CODE;
    this.stopped(isLoggedOut ? lastEnding.reason : 'not linked', LINK_REMEDY);
  }

  stopped(reason: string, remedy: string): void {
    this.#report({ kind: 'stopped', reason, remedy });
  }

  ended(cause: WhatsAppCause, phase: WhatsAppPhase, reason: string): void {
    const code = cause.kind === 'closed' ? { code: cause.code } : {};
    this.#health.ended({ ...code, reason, isLinked: phase !== 'pairing' });
  }

  undecryptable(): void {
    this.#health.undecryptable();
  }

  /** Of another part of the channel: shown while the connection itself is open, until it is over. */
  trouble(trouble: PassingTrouble | undefined): void {
    this.#trouble = trouble;
    if (this.#last?.kind === 'running') this.#running();
  }

  /** Once per reason until `forget`. */
  alert(reason: string, remedy: string): void {
    if (this.#told.has(reason)) return;
    this.#told.add(reason);
    this.#deps.host.alert(`${reason}. ${remedy}`);
  }

  /** What was told is over: the next time is news again. */
  forget(): void {
    this.#told.clear();
  }

  #running(): void {
    const { account } = this.#deps.vault;
    const activeAt = this.#deps.host.clock.now();
    const name = account === undefined ? {} : { account: `+${account.number}` };
    this.#report({ kind: 'running', activeAt, ...name });
    this.#activeAt = activeAt;
  }

  #report(status: ChannelStatus): void {
    this.#activeAt = undefined;
    this.#last = status;
    const trouble = status.kind === 'running' ? this.#trouble : undefined;
    this.#deps.host.report(trouble === undefined ? status : { kind: 'degraded', ...trouble });
    this.#health.set({ status: status.kind });
  }
}

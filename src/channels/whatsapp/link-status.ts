// The status of the link: for the gateway, as a stored row for doctor, and as alerts to the owner on another
// channel, once per trouble.

import { z } from 'zod';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { ChannelHost, ChannelStatus } from '../channel.ts';
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
    this.#health = new HealthRecord(deps.host);
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

// What doctor shows of the link, as one row of the channel's state: written when something of it
// changed, read by whoever asks while the channel may not even run.

const HEALTH_KEY = 'link/health';
const HOUR_MS = 3_600_000;
const DAY_HOURS = 24;
/** Unreadable messages may come by the thousand. */
const COUNT_EVERY_MS = 60_000;

const healthSchema = z.object({
  status: z.enum(['starting', 'running', 'degraded', 'stopped']),
  linkedNumber: z.string().exactOptional(),
  /** Epoch milliseconds. */
  openedAt: z.number().exactOptional(),
  lastEnding: z
    .object({ code: z.number().exactOptional(), reason: z.string(), at: z.number() })
    .readonly()
    .exactOptional(),
  /** Hours since the epoch in which connections ended, with how many; the last day's. */
  endings: z.array(z.tuple([z.number(), z.number()]).readonly()).readonly(),
  /** Messages that could not be decrypted, ever. */
  undecryptable: z.number(),
});

export type LinkHealth = Readonly<z.infer<typeof healthSchema>>;

const NO_HEALTH: LinkHealth = { status: 'starting', endings: [], undecryptable: 0 };

export async function readLinkHealth(
  state: Pick<KeyValueStore, 'get'>,
): Promise<LinkHealth | undefined> {
  const text = await state.get(HEALTH_KEY);
  if (text === undefined) return undefined;
  try {
    return healthSchema.parse(JSON.parse(text));
  } catch {
    // Only a report: the next change writes a new one.
    return undefined;
  }
}

/** New connections within 24 hours before `now` (epoch milliseconds), to the hour. */
export function reconnectsOfLastDay(health: LinkHealth, now: number): number {
  return lastDay(health.endings, now).reduce((sum, [, count]) => sum + count, 0);
}

function lastDay(endings: LinkHealth['endings'], now: number): LinkHealth['endings'] {
  const firstHour = Math.floor(now / HOUR_MS) - DAY_HOURS;
  return endings.filter(([hour]) => hour > firstHour);
}

function counted(endings: LinkHealth['endings'], hour: number): LinkHealth['endings'] {
  const count = endings.find(([known]) => known === hour)?.[1] ?? 0;
  return [...endings.filter(([known]) => known !== hour), [hour, count + 1]];
}

export class HealthRecord {
  readonly #host: StatusDeps['host'];
  #health = NO_HEALTH;
  #written = '';
  #writing: Promise<void> = Promise.resolve();
  #counting: Disposable | undefined;

  constructor(host: StatusDeps['host']) {
    this.#host = host;
  }

  get lastEnding(): LinkHealth['lastEnding'] {
    return this.#health.lastEnding;
  }

  /** What was known before this start. */
  async load(): Promise<void> {
    const { state } = this.#host;
    this.#health = { ...((await readLinkHealth(state)) ?? NO_HEALTH), status: 'starting' };
  }

  set(change: Partial<LinkHealth>): void {
    this.#health = { ...this.#health, ...change };
    this.#write();
  }

  /** `isLinked`: another connection of the account is due. */
  ended({
    isLinked,
    ...ending
  }: {
    readonly code?: number;
    readonly reason: string;
    readonly isLinked: boolean;
  }): void {
    const at = this.#host.clock.now();
    const endings = lastDay(this.#health.endings, at);
    this.set({
      lastEnding: { ...ending, at },
      endings: isLinked ? counted(endings, Math.floor(at / HOUR_MS)) : endings,
    });
  }

  undecryptable(): void {
    this.#health = { ...this.#health, undecryptable: this.#health.undecryptable + 1 };
    this.#counting ??= this.#host.clock.timer(COUNT_EVERY_MS, () => {
      this.#counting = undefined;
      this.#write();
    });
  }

  /** Resolves when everything said so far is written. */
  async flush(): Promise<void> {
    this.#counting?.[Symbol.dispose]();
    this.#counting = undefined;
    this.#write();
    await this.#writing;
  }

  #write(): void {
    this.#writing = this.#writing.then(async () => {
      const value = JSON.stringify(this.#health);
      if (value === this.#written) return;
      this.#written = value;
      try {
        await this.#host.state.set(HEALTH_KEY, value);
      } catch (error) {
        this.#host.log.warn('whatsapp link health not written', { error });
      }
    });
  }
}

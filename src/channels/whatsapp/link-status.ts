// The status of the link: reported to the gateway, stored as one row for doctor, and sent as a
// notice to the owner on another channel, once per problem. Doctor may read the row while the
// channel does not run.

import { z } from 'zod';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { storedJson } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import type { ChannelHost, ChannelStatus } from '../channel.ts';
import type { EndedConnection } from './connection.ts';
import { LINK_REMEDY } from './rules/endings.ts';
import type { Vault } from './vault.ts';

const HEALTH_KEY = 'link/health';
/** Frames come in hundreds. */
const ACTIVE_EVERY_MS = 1000;
/** Unreadable messages may come in thousands. */
const COUNT_EVERY_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_HOURS = 24;
/** Baileys' close code for a device that the account's phone removed. */
const LOGGED_OUT_CODE = 401;

const healthSchema = z.object({
  status: z.enum(['starting', 'running', 'degraded', 'stopped']),
  linkedNumber: z.string().exactOptional(),
  /** Epoch milliseconds. */
  openedAt: z.number().exactOptional(),
  lastEnding: z
    .object({ code: z.number().exactOptional(), reason: z.string(), at: z.number() })
    .readonly()
    .exactOptional(),
  /** Hours since the epoch with the number of connections that ended; for the last day. */
  endings: z.array(z.tuple([z.number(), z.number()]).readonly()).readonly(),
  /** Messages that could not be decrypted, in total. */
  undecryptable: z.number(),
});

type LinkHealth = Readonly<z.infer<typeof healthSchema>>;

/** `retryAt`: epoch milliseconds. */
export type PassingTrouble = { readonly reason: string; readonly retryAt: number };

type StatusDeps = {
  readonly host: Pick<ChannelHost, 'report' | 'alert' | 'clock' | 'log' | 'state'>;
  readonly vault: Pick<Vault, 'account'>;
};

/** The next change replaces an unreadable row. */
export async function readLinkHealth(
  state: Pick<KeyValueStore, 'get'>,
): Promise<LinkHealth | undefined> {
  return storedJson(healthSchema, await state.get(HEALTH_KEY));
}

/** New connections within 24 hours before `now` (epoch milliseconds), to the hour. */
export function reconnectsOfLastDay(health: LinkHealth, now: number): number {
  return lastDay(health.endings, now).reduce((sum, [, count]) => sum + count, 0);
}

function lastDay(endings: LinkHealth['endings'], now: number): LinkHealth['endings'] {
  const firstHour = Math.floor(now / HOUR_MS) - DAY_HOURS;
  return endings.filter(([hour]) => hour > firstHour);
}

export class LinkStatus {
  readonly #host: StatusDeps['host'];
  readonly #vault: StatusDeps['vault'];
  /** Problems that the owner was notified of. */
  readonly #told = new Set<string>();
  #activeAt: number | undefined;
  #last: ChannelStatus | undefined;
  #trouble: PassingTrouble | undefined;
  #health: LinkHealth = { status: 'starting', endings: [], undecryptable: 0 };
  #written = '';
  #writing: Promise<void> = Promise.resolve();
  #counting: Disposable | undefined;

  constructor({ host, vault }: StatusDeps) {
    this.#host = host;
    this.#vault = vault;
  }

  /** Reads the status from before this start. */
  async load(): Promise<void> {
    const known = await readLinkHealth(this.#host.state);
    this.#health = { ...this.#health, ...known, status: 'starting' };
  }

  /** Resolves when everything recorded so far is written. */
  async flush(): Promise<void> {
    this.#counting?.[Symbol.dispose]();
    this.#counting = undefined;
    this.#write();
    await this.#writing;
  }

  starting(): void {
    this.#report({ kind: 'starting' });
  }

  /** A reported temporary problem stays until it is over. */
  connecting(): void {
    if (this.#last?.kind !== 'degraded') this.starting();
  }

  opened(): void {
    const linkedNumber = this.#vault.account?.number;
    this.#running();
    this.#set({
      openedAt: this.#host.clock.now(),
      ...(linkedNumber === undefined ? {} : { linkedNumber }),
    });
  }

  /** A frame arrived on the connection that was reported as open. */
  frame(): void {
    const now = this.#host.clock.now();
    if (this.#activeAt === undefined || now - this.#activeAt < ACTIVE_EVERY_MS) return;
    this.#running();
  }

  degraded(reason: string, retryAt?: number): void {
    this.#report({ kind: 'degraded', reason, retryAt });
  }

  /** Nothing is linked; the reason survives a restart. */
  notLinked(): void {
    const { lastEnding } = this.#health;
    const isLoggedOut = lastEnding?.code === LOGGED_OUT_CODE;
    this.stopped(isLoggedOut ? lastEnding.reason : t`not linked`, LINK_REMEDY);
  }

  stopped(reason: string, remedy: string): void {
    this.#report({ kind: 'stopped', reason, remedy });
  }

  ended({ cause, phase }: EndedConnection, reason: string): void {
    const at = this.#host.clock.now();
    const hours = new Map(lastDay(this.#health.endings, at));
    const hour = Math.floor(at / HOUR_MS);
    // During pairing, reconnections of an account are not counted.
    if (phase !== 'pairing') hours.set(hour, (hours.get(hour) ?? 0) + 1);
    const code = cause.kind === 'closed' ? { code: cause.code } : {};
    this.#set({ lastEnding: { ...code, reason, at }, endings: [...hours] });
  }

  undecryptable(): void {
    this.#health = { ...this.#health, undecryptable: this.#health.undecryptable + 1 };
    this.#counting ??= this.#host.clock.timer(COUNT_EVERY_MS, () => {
      this.#counting = undefined;
      this.#write();
    });
  }

  /** Of another part of the channel, until it is over: shown while the connection is open. */
  trouble(trouble: PassingTrouble | undefined): void {
    this.#trouble = trouble;
    if (this.#last?.kind === 'running') this.#running();
  }

  /** Sends a notice, once per reason until `forget`. */
  alert(reason: string, remedy: string): void {
    if (this.#told.has(reason)) return;
    this.#told.add(reason);
    this.#host.alert(`${reason}. ${remedy}`);
  }

  /** The reported problems are over: the next one is reported again. */
  forget(): void {
    this.#told.clear();
  }

  #running(): void {
    const number = this.#vault.account?.number;
    const activeAt = this.#host.clock.now();
    this.#report({ kind: 'running', activeAt, account: number && `+${number}` });
    this.#activeAt = activeAt;
  }

  #report(status: Exclude<ChannelStatus, { readonly kind: 'elsewhere' }>): void {
    this.#activeAt = undefined;
    this.#last = status;
    const trouble = status.kind === 'running' ? this.#trouble : undefined;
    this.#host.report(trouble === undefined ? status : { kind: 'degraded', ...trouble });
    this.#set({ status: status.kind });
  }

  #set(change: Partial<LinkHealth>): void {
    this.#health = { ...this.#health, ...change };
    this.#write();
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

// CONTRACT and operations of a store on which several processes work: which processes live, and
// which of them leads what. A process that is taken for dead loses its turns and what it leads; what
// it still writes under an old hold changes nothing.

import { NanobotError } from '../../message/errors.ts';
import type { SessionKey } from '../../message/ids.ts';
import type { LiveUpdate } from '../../message/message.ts';
import type { Transaction } from './key-value.ts';
import type { TurnHold } from './store.ts';

/** What a process does: `channels` runs no turns, `workers` runs no accounts. */
export const NODE_ROLES = ['all', 'channels', 'workers'] as const;
export type NodeRole = (typeof NODE_ROLES)[number];

/** How a process describes itself to the others. */
export type NodeSelf = {
  /** Machine and process number. */
  readonly name: string;
  readonly role: NodeRole;
  readonly version: string;
  /** A hash of its configuration. */
  readonly config: string;
};

export type NodeReport = NodeSelf & {
  readonly owner: string;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** Since its last sign of life. */
  readonly silentMs: number;
  readonly isDraining: boolean;
  readonly isSelf: boolean;
  /** Accounts and tasks. */
  readonly leads: readonly string[];
  /** Running turns. */
  readonly turns: number;
};

/** What the bus needs of a store that several processes use. */
export interface SharedStore {
  /** This process, as the others see it. */
  readonly owner: string;
  /** Another process has written, or has come or gone. Several of these are one call. */
  onNews(hear: () => void): Disposable;
  /** This process was taken for dead, or cut off for so long that others may take it for dead. */
  onLost(hear: () => void): Disposable;
  /** False while it is cut off from the others. */
  isConnected(): boolean;
  /** Turns that this process holds. */
  held(): Promise<readonly Pick<TurnHold, 'session' | 'epoch'>[]>;
  /** Whether this process leads it. */
  isLeading(resource: string): Promise<boolean>;
  /** The epoch of leading it from now on; undefined while another live process does. */
  lead(resource: string): Promise<number | undefined>;
  release(resource: string): Promise<void>;
  /** As last seen, at most a second ago. */
  leaderOf(resource: string): string | undefined;
  /** Whether another process that is not about to end runs accounts. */
  hasOtherChannels(): boolean;
  /** Whether a turn is due; takes no lock. */
  isTurnDue(): Promise<boolean>;
  /** Turns of this process that were cancelled, or have a follower. */
  newsOfTurns(): Promise<readonly TurnNews[]>;
  /** Shows a running turn to the other processes; best effort. */
  show(update: LiveUpdate, shown: (update: LiveUpdate) => LiveUpdate): void;
  /** Live updates of other processes. */
  onShown(hear: (update: LiveUpdate) => void): Disposable;
  nodes(): Promise<readonly NodeReport[]>;
  /** From now on the others do not count on this process. */
  drain(): void;
  /** What the clock of this machine lacks to that of the server, milliseconds. */
  offsetMs(): number;
}

/** `stopped`: why it was cancelled. */
export type TurnNews = { readonly session: SessionKey; readonly stopped: string | null };

/** What this process led is led by another one: nothing was written. */
export class LeadLostError extends NanobotError {
  override readonly name = 'LeadLostError';
  constructor(resource: string) {
    super('lead_lost', `another process leads ${resource}`);
  }
}

/** An owner of which there is no node has died. */
const LIVES = 'IN (SELECT owner FROM node)';

/** True also where nothing is shared. */
export function leads(tx: Transaction, resource: string): boolean {
  if (!tx.isShared) return true;
  const row = tx.first<{ epoch: number }>(
    'SELECT epoch FROM leader WHERE resource = ? AND owner = ?',
    ...[resource, tx.owner],
  );
  return row !== undefined;
}

export function lead(tx: Transaction, resource: string): number | undefined {
  if (!isNode(tx)) return undefined;
  return tx.all<{ epoch: number }>(
    `INSERT INTO leader (resource, owner, epoch, since) VALUES (?, ?, 1, ?)
     ON CONFLICT (resource) DO UPDATE
       SET owner = excluded.owner, epoch = leader.epoch + 1, since = excluded.since
       WHERE leader.owner IS NULL OR leader.owner = excluded.owner OR NOT leader.owner ${LIVES}
     RETURNING epoch`,
    ...[resource, tx.owner, tx.now],
  )[0]?.epoch;
}

export function release(tx: Transaction, resource: string): void {
  tx.run(
    'UPDATE leader SET owner = NULL WHERE resource = ? AND owner = ?',
    ...[resource, tx.owner],
  );
}

/** A process that was taken for dead and does not know it yet is none. */
export function isNode(tx: Transaction): boolean {
  return (
    tx.first<{ owner: string }>('SELECT owner FROM node WHERE owner = ?', tx.owner) !== undefined
  );
}

/** Only one that is still silent: it may have come back meanwhile. */
export function removeNode(tx: Transaction, owner: string): void {
  tx.run(
    `DELETE FROM node WHERE owner = ? AND seen_at < clock_timestamp() - interval '1.5 seconds'`,
    owner,
  );
}

/** Frees what processes led that are gone. */
export function freeLeads(tx: Transaction): void {
  tx.run(`UPDATE leader SET owner = NULL WHERE owner IS NOT NULL AND NOT owner ${LIVES}`);
}

export function isTurnDue(tx: Transaction): boolean {
  const due = tx.first<{ session: string }>(
    'SELECT session FROM session_lane WHERE ready_at <= ? LIMIT 1',
    tx.now,
  );
  return due !== undefined;
}

export function heldTurns(tx: Transaction): readonly Pick<TurnHold, 'session' | 'epoch'>[] {
  return tx.all<Pick<TurnHold, 'session' | 'epoch'>>(
    'SELECT session, epoch FROM session_lane WHERE owner = ?',
    tx.owner,
  );
}

export function turnsByOwner(tx: Transaction): ReadonlyMap<string, number> {
  const rows = tx.all<{ owner: string; turns: number }>(
    'SELECT owner, count(*) AS turns FROM session_lane WHERE owner IS NOT NULL GROUP BY owner',
  );
  return new Map(rows.map(({ owner, turns }) => [owner, turns]));
}

export function newsOfTurns(tx: Transaction): readonly TurnNews[] {
  return tx.all<TurnNews>(
    `SELECT session, stop_reason AS stopped FROM session_lane
     WHERE owner = ? AND (stop_reason IS NOT NULL OR EXISTS (SELECT 1 FROM inbound
       WHERE inbound.session = session_lane.session AND state = 'pending' AND seq > held_through))`,
    tx.owner,
  );
}

// The processes on one store as operations: which of them live, and which leads what (shared.ts).

import type { Transaction } from './key-value.ts';
import type { HeldTurn, NodeReport, NodeSelf, TurnNews } from './shared.ts';

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
  tx.tells?.('resource', resource);
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
  tx.tells?.('resource', resource);
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
  tx.tells?.('anything', '');
  tx.run(`UPDATE leader SET owner = NULL WHERE owner IS NOT NULL AND NOT owner ${LIVES}`);
}

export function isTurnDue(tx: Transaction): boolean {
  const due = tx.first<{ session: string }>(
    'SELECT session FROM session_lane WHERE ready_at <= ? LIMIT 1',
    tx.now,
  );
  return due !== undefined;
}

export function heldTurns(tx: Transaction): readonly HeldTurn[] {
  return tx.all<HeldTurn>('SELECT session, epoch FROM session_lane WHERE owner = ?', tx.owner);
}

type NodeRow = {
  owner: string;
  self: string;
  started_at: number;
  is_draining: number;
  silent: number;
  turns: number;
};

/** All processes, the oldest first. */
export function listNodes(tx: Transaction): readonly NodeReport[] {
  const nodes = tx.all<NodeRow>(
    `SELECT owner, self, started_at, is_draining,
       (extract(epoch FROM clock_timestamp() - seen_at) * 1000)::bigint AS silent,
       (SELECT count(*) FROM session_lane WHERE session_lane.owner = node.owner) AS turns
     FROM node ORDER BY started_at, owner`,
  );
  const led = tx.all<{ resource: string; owner: string }>(
    'SELECT resource, owner FROM leader WHERE owner IS NOT NULL ORDER BY resource',
  );
  return nodes.map((row) => ({
    ...(JSON.parse(row.self) as NodeSelf),
    owner: row.owner,
    startedAt: row.started_at,
    silentMs: row.silent,
    isDraining: row.is_draining === 1,
    leads: led.filter(({ owner }) => owner === row.owner).map(({ resource }) => resource),
    turns: row.turns,
  }));
}

export function newsOfTurns(tx: Transaction): readonly TurnNews[] {
  return tx.all<TurnNews>(
    `SELECT session, stop_reason AS stopped FROM session_lane
     WHERE owner = ? AND (stop_reason IS NOT NULL OR EXISTS (SELECT 1 FROM inbound
       WHERE inbound.session = session_lane.session AND state = 'pending' AND seq > held_through))`,
    tx.owner,
  );
}

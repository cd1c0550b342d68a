// Albums in groups: WhatsApp sends each picture as a message of its own, and a mention below one of them
// calls for all. So the parts stay in the ledger until no more come, and are then addressed alike. Pure
// but for what is remembered of parts that come later still.

import type { InboundMessage } from '../../kernel/message/message.ts';
import type { InboxRow } from './inbound.ts';
import { albumOf } from './rules/content.ts';

/** How long the next part of an album is waited for, and how long all of them, milliseconds. */
const PART_WAIT_MS = 1500;
const WHOLE_WAIT_MS = 10_000;
const MAX_REMEMBERED = 100;
const RANK = { direct: 3, mention: 2, reply: 1, ambient: 0 } as const;

export type Ready = {
  readonly rows: readonly InboxRow[];
  /** After which the others are looked at again; undefined: there are no others. */
  readonly waitMs: number | undefined;
};

/** Leaves out albums that may still be coming, with all that was said behind them in their group. */
export function withoutOpenAlbums(rows: readonly InboxRow[], now: number): Ready {
  const waits = new Map<string, number>();
  for (const [key, parts] of Map.groupBy(rows, albumKeyOf)) {
    if (key === undefined) continue;
    const times = parts.map(({ receivedAt }) => receivedAt);
    const dueAt = Math.min(Math.max(...times) + PART_WAIT_MS, Math.min(...times) + WHOLE_WAIT_MS);
    if (dueAt > now) waits.set(key, dueAt - now);
  }
  if (waits.size === 0) return { rows, waitMs: undefined };
  const closed = new Set<string>();
  const ready = rows.filter((row) => {
    const key = albumKeyOf(row);
    if (key !== undefined && waits.has(key)) closed.add(row.key.remoteJid);
    return !closed.has(row.key.remoteJid);
  });
  return { rows: ready, waitMs: Math.min(...waits.values()) };
}

/** Undefined for what is no part of an album in a group. */
export function albumKeyOf({ key, message }: InboxRow): string | undefined {
  if (!key.remoteJid.endsWith('@g.us')) return undefined;
  const album = albumOf(message);
  return album === undefined ? undefined : `${key.remoteJid}/${key.participant}/${album}`;
}

type Addressing = InboundMessage['addressing'];

/** The strongest way in which any part of the album was addressed so far. */
export type AlbumCalls = (key: string, addressings: readonly Addressing[]) => Addressing;

export function createAlbumCalls(): AlbumCalls {
  const called = new Map<string, Addressing>();
  return (key, addressings) => {
    const known = called.get(key) ?? 'ambient';
    const strongest = [known, ...addressings].reduce((one, other) =>
      RANK[other] > RANK[one] ? other : one,
    );
    called.delete(key);
    called.set(key, strongest);
    const [oldest] = called.keys();
    if (called.size > MAX_REMEMBERED && oldest !== undefined) called.delete(oldest);
    return strongest;
  };
}

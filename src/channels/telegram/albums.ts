// Albums: Telegram hands over each picture as a message of its own, marked with the album's id. Here
// they become one message, and updates are left with Telegram until an album has come whole. Pure.

import type { InboundEntry } from '../../kernel/bus/bus.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { fieldsOf, integerOf, textOf } from '../../lib/json/json.ts';

/** How long the rest of an album is waited for, milliseconds. */
export const ALBUM_WAIT_MS = 700;
/** Most there can be in one (Bot API, sendMediaGroup): what stands before is whole. */
const ALBUM_SIZE = 10;
const RANK = { direct: 3, mention: 2, reply: 1, ambient: 0 } as const;

/** Chat, sender and id of the album an update belongs to. */
function albumOf(update: unknown): string | undefined {
  const message = fieldsOf(fieldsOf(update)?.['message']);
  const album = textOf(message?.['media_group_id']);
  const chat = integerOf(fieldsOf(message?.['chat'])?.['id']);
  const sender = fieldsOf(message?.['from'])?.['id'] ?? fieldsOf(message?.['sender_chat'])?.['id'];
  return album === undefined ? undefined : `${chat}:${sender}:${album}`;
}

/** Albums of which more may come, and how much of them is there. */
export type OpenAlbums = { readonly keys: string; readonly count: number };

/**
 * The updates in front of albums that may still be coming; `open` are those. What did not grow since
 * it was `seen` is whole.
 */
export function wholeUpdates(
  updates: readonly unknown[],
  seen: OpenAlbums | undefined,
): { readonly whole: readonly unknown[]; readonly open: OpenAlbums | undefined } {
  const late = updates.slice(-ALBUM_SIZE).map(albumOf);
  const albums = new Set(late.filter((key) => key !== undefined));
  if (albums.size === 0) return { whole: updates, open: undefined };
  const isOpen = (update: unknown) => albums.has(albumOf(update) ?? '');
  const count = updates.filter(isOpen).length;
  const keys = [...albums].join(' ');
  const isWhole = seen?.keys === keys && seen.count === count;
  if (isWhole) return { whole: updates, open: undefined };
  return { whole: updates.slice(0, updates.findIndex(isOpen)), open: { keys, count } };
}

/** `entries[n]` is made of `updates[n]`; those of one album become one, where the first stood. */
export function joinAlbums(
  updates: readonly unknown[],
  entries: readonly (InboundEntry | undefined)[],
): readonly InboundEntry[] {
  const joined: InboundEntry[] = [];
  const places = new Map<string, number>();
  for (const [index, entry] of entries.entries()) {
    if (entry === undefined) continue;
    const key = entry.kind === 'queue' ? albumOf(updates[index]) : undefined;
    const place = key === undefined ? undefined : places.get(key);
    const before = place === undefined ? undefined : joined[place];
    if (place !== undefined && before !== undefined) {
      joined[place] = { kind: 'queue', message: together(before.message, entry.message) };
      continue;
    }
    if (key !== undefined) places.set(key, joined.length);
    joined.push(entry);
  }
  return joined;
}

/** What any caption says is said of the whole album: in a group one mention calls for all of it. */
function together(first: InboundMessage, next: InboundMessage): InboundMessage {
  const isStronger = RANK[next.addressing] > RANK[first.addressing];
  return {
    ...first,
    addressing: isStronger ? next.addressing : first.addressing,
    text: [first.text, next.text].filter((text) => text !== '').join('\n'),
    attachments: [...(first.attachments ?? []), ...(next.attachments ?? [])],
  };
}

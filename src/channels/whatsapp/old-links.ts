// What is left of earlier links: credentials and keys moved out of the way as a whole, the newest
// few kept, so that a person who linked again by mistake has not destroyed anything.

import type { KeyValueChange, KeyValueStore } from '../../kernel/bus/store/store.ts';
import { CREDS_PREFIX } from './creds-generations.ts';
import { KEY_PREFIX } from './signal-keys.ts';

const OLD_PREFIX = 'old/';
const LINKS_KEPT = 3;
const TIME_DIGITS = 15;
/** Sorts behind every key of one old link. */
const BEHIND = '\u{10ffff}';

/** The rows that take the stored link away; it is kept under the time given, epoch milliseconds. */
export async function setLinkAside(
  state: KeyValueStore,
  now: number,
): Promise<readonly KeyValueChange[]> {
  const stored = await linkRows(state);
  if (stored.length === 0) return [];
  const folder = `${OLD_PREFIX}${String(now).padStart(TIME_DIGITS, '0')}/`;
  return [
    ...stored.flatMap(({ key, value }) => [
      { key: folder + key, value },
      { key, value: undefined },
    ]),
    ...(await surplus(state, folder)),
  ];
}

/** The rows that take away what never was a link. */
export async function dropLink(state: KeyValueStore): Promise<readonly KeyValueChange[]> {
  return (await linkRows(state)).map(({ key }) => ({ key, value: undefined }));
}

async function linkRows(state: KeyValueStore): Promise<readonly KeyValueChange[]> {
  return [...(await state.list(CREDS_PREFIX)), ...(await state.list(KEY_PREFIX))];
}

/** Deletes the links older than those kept, `newest` counted among them. */
async function surplus(state: KeyValueStore, newest: string): Promise<readonly KeyValueChange[]> {
  const folders = new Set([newest]);
  for (let after = OLD_PREFIX; ; ) {
    const [next] = await state.list(OLD_PREFIX, { limit: 1, after });
    if (next === undefined) break;
    const folder = next.key.slice(0, next.key.indexOf('/', OLD_PREFIX.length) + 1);
    folders.add(folder);
    after = folder + BEHIND;
  }
  const rows: KeyValueChange[] = [];
  for (const folder of [...folders].sort().slice(0, -LINKS_KEPT)) {
    for (const { key } of await state.list(folder)) rows.push({ key, value: undefined });
  }
  return rows;
}

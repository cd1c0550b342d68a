// The rows that every message asks for, kept in memory as they are on the disk: a run of the channel
// is the only one that writes them.

import type { KeyValueChange, KeyValueStore } from '../../kernel/bus/store/store.ts';
import { RecentMap } from '../../lib/async.ts';

/** What is known of people, and the keys of their devices. */
const ASKED_OFTEN = /^(?:person\/|pause\/|key\/(?:session|device-list|tctoken)\/)/;
const MAX_ROWS = 1000;

export function withRecentRows(state: KeyValueStore): KeyValueStore {
  const known = new RecentMap<string, string | undefined>(MAX_ROWS);
  /** The last write of each row that is on its way to the disk. */
  const writing = new Map<string, object>();
  let writes = 0;

  async function written(rows: readonly KeyValueChange[], work: () => Promise<void>) {
    const kept = rows.filter(({ key }) => ASKED_OFTEN.test(key));
    const write = {};
    writes += 1;
    for (const { key } of kept) {
      known.delete(key);
      writing.set(key, write);
    }
    let isStored = false;
    try {
      await work();
      isStored = true;
    } finally {
      for (const { key, value } of kept) {
        if (writing.get(key) !== write) continue;
        writing.delete(key);
        if (isStored) known.set(key, value);
      }
    }
  }

  function forgetting<T>(work: () => Promise<T>): Promise<T> {
    writes += 1;
    known.clear();
    return work();
  }

  return {
    async get(key) {
      if (!ASKED_OFTEN.test(key) || writing.has(key)) return state.get(key);
      if (known.has(key)) return known.get(key);
      const before = writes;
      const value = await state.get(key);
      if (writes === before) known.set(key, value);
      return value;
    },
    getCommitted: (key) => state.getCommitted(key),
    set: (key, value) => written([{ key, value }], () => state.set(key, value)),
    setMany: (rows) => written(rows, () => state.setMany(rows)),
    delete: (key) => written([{ key, value: undefined }], () => state.delete(key)),
    swap: (...given) => forgetting(() => state.swap(...given)),
    update: (step) => forgetting(() => state.update(step)),
    list: (...given) => state.list(...given),
    expire: (...given) => forgetting(() => state.expire(...given)),
  };
}

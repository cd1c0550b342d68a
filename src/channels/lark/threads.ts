// Where a thread can be written into: Lark takes only answers to a message of it, so one of each thread is
// remembered, once.

import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { ThreadId } from '../../kernel/message/ids.ts';
import { isId } from './ids.ts';

export type Threads = {
  note(thread: ThreadId | undefined, message: string | undefined): Promise<void>;
  /** A message to answer; undefined where none is known. */
  anchor(thread: ThreadId): Promise<string | undefined>;
};

const MAX_KNOWN = 1000;
const keyOf = (thread: ThreadId) => `thread:${thread}`;

export function createThreads(state: () => KeyValueStore | undefined): Threads {
  const known = new Map<ThreadId, string>();
  const keep = (thread: ThreadId, message: string) => {
    known.set(thread, message);
    const [oldest] = known.keys();
    if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest);
  };

  async function anchor(thread: ThreadId): Promise<string | undefined> {
    const kept = known.get(thread) ?? (await state()?.get(keyOf(thread)));
    if (!isId(kept)) return undefined;
    keep(thread, kept);
    return kept;
  }

  return {
    anchor,
    async note(thread, message) {
      if (thread === undefined || message === undefined) return;
      if ((await anchor(thread)) !== undefined) return;
      await state()?.set(keyOf(thread), message);
      keep(thread, message);
    },
  };
}

// Where the owner of the account answers by hand, the agent is silent for a while. The rows survive a
// restart; a chat has one as soon as its owner wrote there.

import type { ChatId } from '../../core/ids.ts';
import type { Clock } from '../../lib/clock.ts';
import type { KeyValueStore } from '../../store/store.ts';

export interface OwnerPause {
  /** The owner wrote in this chat; each message prolongs the silence. Epoch milliseconds. */
  note(chat: ChatId, writtenAt: number): Promise<void>;
  /**
   * Until when the owner has the say in a chat known by these names, epoch milliseconds; 0: not at
   * all. Also covers what was written before the owner wrote: they have read it.
   */
  until(names: readonly ChatId[]): Promise<number>;
  /** Forgets what no rule looks at any more: what ended longer ago than this. */
  expire(keepMs: number): Promise<void>;
}

export type OwnerPauseDeps = {
  readonly state: KeyValueStore;
  readonly clock: Clock;
  /** 0: the agent is never silent. */
  readonly pauseMs: number;
};

const PREFIX = 'pause/';

export function createOwnerPause({ state, clock, pauseMs }: OwnerPauseDeps): OwnerPause {
  async function stored(chat: ChatId): Promise<number> {
    const until = Number((await state.get(`${PREFIX}${chat}`)) ?? 0);
    // A damaged one would else keep the owner's next word from being noted.
    return Number.isFinite(until) ? until : 0;
  }

  return {
    async note(chat, writtenAt) {
      if (pauseMs === 0) return;
      const until = Math.min(writtenAt, clock.now()) + pauseMs;
      if (until > (await stored(chat))) await state.set(`${PREFIX}${chat}`, String(until));
    },
    async until(names) {
      if (pauseMs === 0) return 0;
      return Math.max(...(await Promise.all(names.map(stored))), 0);
    },
    expire: async (keepMs) => {
      await state.expire(PREFIX, clock.now() - pauseMs - keepMs);
    },
  };
}

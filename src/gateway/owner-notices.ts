// Tells the owner who knocks, on the door last used: once per stranger, so many in an hour, then one
// line for all the others. Counted on disk: a restart does not start a flood anew.

import type { MessageBus } from '../bus/bus.ts';
import { messageId } from '../core/ids.ts';
import type { ChatRef } from '../core/message.ts';
import { MANY_STRANGERS_NOTICE, strangerNotice } from '../core/stranger-words.ts';
import type { Clock } from '../lib/clock.ts';
import { createLanes } from '../lib/lanes.ts';
import type { KeyValueStore } from '../store/store.ts';
import type { Stranger, Strangers } from './strangers.ts';

const MAX_NOTICES = 10;
const WINDOW_MS = 3_600_000;
const KEY = 'owner-notices';

export type OwnerNoticesDeps = {
  readonly state: KeyValueStore;
  readonly bus: Pick<MessageBus, 'send'>;
  readonly strangers: Strangers;
  readonly clock: Clock;
  ownerChat(): Promise<ChatRef>;
};

/** `sent`: notices since then, the one for all others included. */
type Count = { readonly since: number; readonly sent: number };

export type AnnounceStranger = (stranger: Stranger) => Promise<void>;

export function createOwnerNotices(deps: OwnerNoticesDeps): AnnounceStranger {
  const { state, bus, strangers, clock, ownerChat } = deps;
  const lanes = createLanes();

  async function count(): Promise<Count> {
    const stored = await state.get(KEY);
    const fresh: Count = { since: clock.now(), sent: 0 };
    const found: Count = stored === undefined ? fresh : JSON.parse(stored);
    return clock.now() - found.since < WINDOW_MS ? found : fresh;
  }

  async function announce(stranger: Stranger) {
    const { since, sent } = await count();
    if (stranger.announced || sent > MAX_NOTICES) return;
    const isLast = sent === MAX_NOTICES;
    await bus.send({
      id: messageId(isLast ? `strangers/${since}` : `stranger/${stranger.firstId}`),
      chat: await ownerChat(),
      markdown: isLast ? MANY_STRANGERS_NOTICE : strangerNotice(stranger),
    });
    await state.set(KEY, JSON.stringify({ since, sent: sent + 1 }));
    if (!isLast) await strangers.note(stranger, { announced: true });
  }

  return (stranger) => lanes.run(KEY, () => announce(stranger));
}

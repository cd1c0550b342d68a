// Cards with buttons that can still be pressed. To take the buttons away Lark wants the whole card again,
// so it is kept without them until then.

import type { NativeId } from '../../core/ids.ts';
import { splitMarkdown } from '../../core/markup/split.ts';
import type { Clock } from '../../lib/clock.ts';
import type { KeyValueStore } from '../../store/store.ts';
import { type Card, cardJson, TEXT_UNITS } from './cards.ts';
import { isGone, toDeliveryError } from './failures.ts';
import type { Messages } from './messages.ts';

export type OpenCards = {
  keep(id: NativeId, card: Card): Promise<void>;
  /** It says `now` from then on, where that is given. @throws DeliveryError */
  close(id: NativeId, signal: AbortSignal, now?: string): Promise<void>;
  /** Forgets cards nobody has pressed for long. */
  expire(): Promise<void>;
};

const PREFIX = 'card:';
/** A card can be changed for 14 days (im-v1/message/patch). */
const LIFETIME_MS = 14 * 24 * 3_600_000;

export function createOpenCards(
  messages: Messages,
  clock: Clock,
  state: () => KeyValueStore | undefined,
): OpenCards {
  return {
    async keep(id, { runs }) {
      await state()?.set(PREFIX + id, cardJson({ runs }));
    },
    async close(id, signal, now) {
      const kept = await state()?.get(PREFIX + id);
      if (kept === undefined) return;
      const [whole, ...more] = now === undefined ? [] : splitMarkdown(now, TEXT_UNITS);
      const isOne = whole !== undefined && more.length === 0;
      try {
        await messages.change(id, isOne ? cardJson({ runs: whole.runs }) : kept, signal);
      } catch (error) {
        if (!isGone(error)) throw toDeliveryError(error, true);
      }
      await state()?.delete(PREFIX + id);
    },
    async expire() {
      await state()?.expire(PREFIX, clock.now() - LIFETIME_MS);
    },
  };
}

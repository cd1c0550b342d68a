// Cards with buttons that can still be pressed. To take the buttons away Lark wants the whole card again,
// so it is kept without them until then.

import type { NativeId } from '../../core/ids.ts';
import type { Clock } from '../../lib/clock.ts';
import type { KeyValueStore } from '../../store/store.ts';
import { type Card, cardJson } from './cards.ts';
import { isGone, toDeliveryError } from './failures.ts';
import type { Messages } from './messages.ts';

export type OpenCards = {
  keep(id: NativeId, card: Card): Promise<void>;
  /** @throws DeliveryError */
  close(id: NativeId, signal: AbortSignal): Promise<void>;
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
    async close(id, signal) {
      const card = await state()?.get(PREFIX + id);
      if (card === undefined) return;
      try {
        await messages.change(id, card, signal);
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

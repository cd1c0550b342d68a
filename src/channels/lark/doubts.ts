// Since when it is unknown whether a part arrived. Within the hour Lark tells a repeat by its uuid and
// nothing need be said; afterwards, and where a dead process cannot say since when, the repeat says so.

import type { SendContext } from '../../bus/bus.ts';
import { DeliveryError } from '../../core/errors.ts';
import type { MessageId } from '../../core/ids.ts';
import type { Clock } from '../../lib/clock.ts';

/** Lark keeps a uuid for an hour; some minutes are its clock's and ours. */
const KNOWN_AGAIN_MS = 50 * 60_000;
const MAX_KNOWN = 1000;

export type Doubts = {
  /** `isRepeat`: the part may stand in the chat already, and Lark may not know it again. */
  during<T>(
    id: MessageId,
    part: number,
    context: Pick<SendContext, 'repeatsUnknown' | 'sentParts'>,
    send: (isRepeat: boolean) => Promise<T>,
  ): Promise<T>;
};

export function createDoubts(clock: Clock): Doubts {
  const since = new Map<string, number>();
  return {
    async during(id, part, { repeatsUnknown, sentParts }, send) {
      const key = `${id}#${part}`;
      const first = since.get(key);
      const isFresh = first !== undefined && clock.now() - first < KNOWN_AGAIN_MS;
      const isDoubtful = repeatsUnknown && part === sentParts.length;
      try {
        const result = await send(isDoubtful && !isFresh);
        since.delete(key);
        return result;
      } catch (error) {
        const isUnknown = error instanceof DeliveryError && error.certainty === 'unknown';
        if (isUnknown && first === undefined) since.set(key, clock.now());
        const [oldest] = since.keys();
        if (since.size > MAX_KNOWN && oldest !== undefined) since.delete(oldest);
        throw error;
      }
    },
  };
}

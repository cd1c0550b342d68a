// What is remembered of a part between its tries: since when it is unknown whether it arrived, and how
// often Lark refused it with a code that may pass. Within the hour Lark tells a repeat by its uuid and
// nothing need be said; afterwards, and where a dead process cannot say since when, the repeat says so.

import type { SendContext } from '../../kernel/bus/bus.ts';
import { DeliveryError, NEVER } from '../../kernel/message/errors.ts';
import type { MessageId } from '../../kernel/message/ids.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { UNCLEAR_REFUSAL } from './failures.ts';

/** Lark keeps a uuid for an hour; some minutes are its clock's and ours. */
const KNOWN_AGAIN_MS = 50 * 60_000;
const MAX_KNOWN = 1000;
/** Refusals of one part with codes that may pass: with the waits between them about a quarter of an hour. */
const MAX_UNCLEAR_TRIES = 20;

export type Doubts = {
  /** `isRepeat`: the part may stand in the chat already, and Lark may not know it again. */
  during<T>(
    id: MessageId,
    part: number,
    context: Pick<SendContext, 'repeatsUnknown' | 'sentParts'>,
    send: (isRepeat: boolean) => Promise<T>,
  ): Promise<T>;
};

type PartTries = { readonly since?: number; readonly unclear: number };

export function createDoubts(clock: Clock): Doubts {
  const tries = new Map<string, PartTries>();

  function note(key: string, failed: PartTries) {
    tries.set(key, failed);
    const [oldest] = tries.keys();
    if (tries.size > MAX_KNOWN && oldest !== undefined) tries.delete(oldest);
  }

  return {
    async during(id, part, { repeatsUnknown, sentParts }, send) {
      const key = `${id}#${part}`;
      const before = tries.get(key) ?? { unclear: 0 };
      const isFresh = before.since !== undefined && clock.now() - before.since < KNOWN_AGAIN_MS;
      const isDoubtful = repeatsUnknown && part === sentParts.length;
      try {
        const result = await send(isDoubtful && !isFresh);
        tries.delete(key);
        return result;
      } catch (error) {
        if (!(error instanceof DeliveryError)) throw error;
        const { certainty, code, message } = error;
        const unclear = before.unclear + (code === UNCLEAR_REFUSAL ? 1 : 0);
        const since = before.since ?? (certainty === 'unknown' ? clock.now() : undefined);
        note(key, { unclear, ...(since === undefined ? {} : { since }) });
        if (code !== UNCLEAR_REFUSAL || unclear < MAX_UNCLEAR_TRIES) throw error;
        throw new DeliveryError(message, { certainty, remedy: NEVER, code });
      }
    },
  };
}

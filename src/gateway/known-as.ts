// Under which names somebody is known on all their doors, so that one person is counted once.

import { type InboundMessage, idsOf } from '../core/message.ts';
import type { Persons } from './persons.ts';

/** Names `channel:id`; none of whom nobody vouches for. */
export type KnownAs = (
  message: Pick<InboundMessage, 'sender' | 'chat'>,
) => Promise<readonly string[]>;

export function createKnownAs(persons: Pick<Persons, 'of'>): KnownAs {
  return async ({ sender, chat }) => {
    if (sender.kind !== 'person' || sender.verified === 'unverified') return [];
    const person = await persons.of(chat.channel, idsOf(sender));
    const doors = person?.doors ?? [];
    return doors.flatMap(({ channel, ids }) => ids.map((id) => `${channel}:${id}`));
  };
}

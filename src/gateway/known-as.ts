// Under which names somebody is known on all their doors, so that one person is counted once, and what
// an owner allows them.

import { type InboundMessage, idsOf } from '../core/message.ts';
import type { PersonLimits } from '../core/person-limits.ts';
import type { Persons } from './persons.ts';

export type Known = {
  /** `channel:id`. */
  readonly names: readonly string[];
  readonly limits?: PersonLimits;
};

/** Nothing of whom nobody vouches for. */
export type KnownAs = (message: Pick<InboundMessage, 'sender' | 'chat'>) => Promise<Known>;

export function createKnownAs(persons: Pick<Persons, 'of'>): KnownAs {
  return async ({ sender, chat }) => {
    if (sender.kind !== 'person' || sender.verified === 'unverified') return { names: [] };
    const person = await persons.of(chat.channel, idsOf(sender));
    const doors = person?.doors ?? [];
    const names = doors.flatMap(({ channel, ids }) => ids.map((id) => `${channel}:${id}`));
    return person?.limits === undefined ? { names } : { names, limits: person.limits };
  };
}

// Everything that is known and decided about people, over one scope of the store.

import type { PersonLimits } from '../access/person.ts';
import type { ApprovalPolicy } from '../access/rights.ts';
import type { KeyValueStore } from '../bus/store/store.ts';
import { createRoutes } from '../intake/routes.ts';
import { type InboundMessage, idsOf } from '../message/message.ts';
import { createLinks } from './links.ts';
import { type CodesDeps, createPairing } from './pairing.ts';
import { openPeopleRows } from './people-rows.ts';
import { createPersons, type Persons, type PersonsDeps } from './persons.ts';
import { createDecisions, createStrangers, type DecisionsDeps } from './strangers.ts';

/** `state`: of the scope of people. */
export type PeopleDeps = Pick<DecisionsDeps, 'release'> &
  Omit<PersonsDeps, 'book'> &
  CodesDeps & { readonly state: KeyValueStore };

export type People = ReturnType<typeof createPeople>;

export function createPeople(deps: PeopleDeps) {
  const book = openPeopleRows(deps.rows, deps.state);
  const persons = createPersons({ ...deps, book });
  const pairing = createPairing({ ...deps, book });
  const strangers = createStrangers(deps);
  return {
    book,
    persons,
    routes: createRoutes({ book, persons }),
    links: createLinks({ ...deps, persons }),
    pairing,
    strangers,
    decisions: createDecisions({ ...deps, pairing, strangers, now: () => deps.clock.now() }),
  };
}

// Under which names somebody is known on all their doors, so that one person is counted once, and what
// an owner allows them.

export type Known = {
  /** `channel:id`. */
  readonly names: readonly string[];
  readonly limits?: PersonLimits;
  readonly approvals?: ApprovalPolicy;
};

/** Nothing of whom nobody vouches for. */
export type KnownAs = (message: Pick<InboundMessage, 'sender' | 'chat'>) => Promise<Known>;

export function createKnownAs(persons: Pick<Persons, 'of'>): KnownAs {
  return async ({ sender, chat }) => {
    if (sender.kind !== 'person' || sender.verified === 'unverified') return { names: [] };
    const person = await persons.of(chat.channel, idsOf(sender));
    const doors = person?.doors ?? [];
    const names = doors.flatMap(({ channel, ids }) => ids.map((id) => `${channel}:${id}`));
    const { limits, approvals } = person ?? {};
    return {
      names,
      ...(limits === undefined ? {} : { limits }),
      ...(approvals === undefined ? {} : { approvals }),
    };
  };
}

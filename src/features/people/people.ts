// Everything that is known and decided about people, over one scope of the store.

import type { PersonLimits } from '../../kernel/access/person.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { createRoutes, type Routes } from '../../kernel/intake/routes.ts';
import { type InboundMessage, idsOf } from '../../kernel/message/message.ts';
import type { OpenRows } from '../../kernel/rows.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createDecisions, type Decisions, type DecisionsDeps } from './decisions.ts';
import { createLinks, type Links } from './links.ts';
import { createPairing, type Pairing } from './pairing.ts';
import { PeopleBook, type PeopleBookDeps } from './people-book.ts';
import { createPersons, type Persons, type PersonsDeps } from './persons.ts';
import { createStrangers, type Strangers } from './strangers.ts';

export type PeopleDeps = Pick<DecisionsDeps, 'release'> &
  Omit<PersonsDeps, 'book'> &
  Pick<PeopleBookDeps, 'revision'> & {
    readonly rows: OpenRows;
    readonly state: KeyValueStore;
    readonly clock: Clock;
    randomBytes(size: number): Uint8Array;
  };

export type People = {
  readonly book: PeopleBook;
  readonly persons: Persons;
  readonly links: Links;
  readonly routes: Routes;
  readonly pairing: Pairing;
  readonly strangers: Strangers;
  readonly decisions: Decisions;
};

export function createPeople(deps: PeopleDeps): People {
  const { rows, state, clock, randomBytes, release } = deps;
  const book = new PeopleBook(deps);
  const persons = createPersons({ ...deps, book });
  const pairing = createPairing({ rows, book, clock, randomBytes });
  const strangers = createStrangers({ rows, clock });
  const now = () => clock.now();
  return {
    book,
    persons,
    routes: createRoutes({ book, persons }),
    links: createLinks({ state, clock, randomBytes, persons }),
    pairing,
    strangers,
    decisions: createDecisions({ pairing, strangers, now, release }),
  };
}

// Under which names somebody is known on all their doors, so that one person is counted once, and what
// an owner allows them.

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

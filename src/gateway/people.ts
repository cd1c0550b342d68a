// Everything that is known and decided about people, over one scope of the store.

import type { Clock } from '../lib/clock.ts';
import type { KeyValueStore } from '../store/store.ts';
import { createDecisions, type Decisions, type DecisionsDeps } from './decisions.ts';
import { createLinks, type Links } from './links.ts';
import { createPairing, type Pairing } from './pairing.ts';
import { PeopleBook, type PeopleBookDeps } from './people-book.ts';
import { createPersons, type Persons, type PersonsDeps } from './persons.ts';
import { createRoutes, type Routes } from './routes.ts';
import { createStrangers, type Strangers } from './strangers.ts';

export type PeopleDeps = Pick<DecisionsDeps, 'release'> &
  Omit<PersonsDeps, 'book'> &
  Pick<PeopleBookDeps, 'revision'> & {
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
  const { state, clock, randomBytes, release } = deps;
  const book = new PeopleBook(deps);
  const persons = createPersons({ ...deps, book });
  const pairing = createPairing({ state, book, clock, randomBytes });
  const strangers = createStrangers({ state, clock });
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

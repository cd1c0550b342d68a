// Everything that is known and decided about people, over one scope of the store.

import type { KeyValueStore } from '../bus/store/store.ts';
import { createRoutes } from '../intake/routes.ts';
import { createLinks } from './links.ts';
import { type CodesDeps, createPairing } from './pairing.ts';
import { openPeopleRows } from './people-rows.ts';
import { createPersons, type PersonsDeps } from './persons.ts';
import { createDecisions, createUnknownSenders, type DecisionsDeps } from './unknown-senders.ts';

/** `state`: of the scope of people. */
export type PeopleDeps = Pick<DecisionsDeps, 'release' | 'settled'> &
  Omit<PersonsDeps, 'peopleRows'> &
  CodesDeps & { readonly state: KeyValueStore };

export type People = ReturnType<typeof createPeople>;

export function createPeople(deps: PeopleDeps) {
  const peopleRows = openPeopleRows(deps.rows, deps.state);
  const persons = createPersons({ ...deps, peopleRows });
  const pairing = createPairing({ ...deps, peopleRows });
  const strangers = createUnknownSenders(deps);
  return {
    peopleRows,
    persons,
    routes: createRoutes({ peopleRows, persons }),
    links: createLinks({ ...deps, persons }),
    pairing,
    strangers,
    decisions: createDecisions({ ...deps, pairing, strangers, now: () => deps.clock.now() }),
  };
}

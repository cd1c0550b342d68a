// Everything that is known and decided about people, over one scope of the store.

import type { Clock } from '../lib/clock.ts';
import type { KeyValueStore } from '../store/store.ts';
import { createDecisions, type Decisions, type DecisionsDeps } from './decisions.ts';
import { createPairing, type Pairing } from './pairing.ts';
import { createStrangers, type Strangers } from './strangers.ts';

export type PeopleDeps = Pick<DecisionsDeps, 'release'> & {
  readonly state: KeyValueStore;
  readonly clock: Clock;
  randomBytes(size: number): Uint8Array;
};

export type People = {
  readonly pairing: Pairing;
  readonly strangers: Strangers;
  readonly decisions: Decisions;
};

export function createPeople({ state, clock, randomBytes, release }: PeopleDeps): People {
  const pairing = createPairing({ state, clock, randomBytes });
  const strangers = createStrangers({ state, clock });
  const now = () => clock.now();
  return {
    pairing,
    strangers,
    decisions: createDecisions({ pairing, strangers, now, release }),
  };
}

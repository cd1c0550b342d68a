// A gateway beside which no local model server runs.

import type { LocalModels } from '../../src/features/local-models/local-models.ts';

export const NO_LOCAL_MODELS: LocalModels = {
  only: {
    holding: async () => undefined,
    hold: async () => undefined,
    refusal: async () => undefined,
  },
  isLocal: () => false,
  look: async () => [],
  preferred: () => '',
  warmUp: () => undefined,
  useForAll: async () => undefined,
};

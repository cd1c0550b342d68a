// fast-check as tests get it (vitest.config.ts): the same inputs in each run, so that a run says
// something of what was changed. FC_SEED=<number> tries others.

import fc from '../../node_modules/fast-check/lib/fast-check.js';

const SEED = 20_261_122;

fc.configureGlobal({ seed: Number(process.env['FC_SEED'] ?? SEED) });

export default fc;

// The helpers of a home and their profiles, as a command beside the gateway sees them.

import { CALIBRATION_SCOPE, Calibrator } from '../automation/calibrator.ts';
import { HELPERS_SCOPE, HelperBook } from '../automation/helper-book.ts';
import { createProfileBook } from '../automation/profile-book.ts';
import { VOTES_SCOPE, VoteBook } from '../automation/vote-book.ts';
import { configuredOf } from '../core/calibration.ts';
import type { Config } from '../core/config.ts';
import type { ReadProfile } from '../core/profile.ts';
import { type HelperRun, helperLine } from '../core/subagent.ts';
import type { Clock } from '../lib/clock.ts';
import { createGuardedFiles } from '../lib/guarded-files.ts';
import type { StateStore } from '../store/store.ts';
import type { Home } from './home.ts';

type ShownRun = Pick<HelperRun, 'id' | 'label' | 'state' | 'startedAt' | 'endedAt' | 'result'> & {
  readonly kind: HelperRun['plan']['kind'];
  readonly session: string;
};

export async function openHelpers(
  store: StateStore,
  { home, clock }: { readonly home: Home; readonly clock: Clock },
  config: Config,
): Promise<{
  readonly profiles: readonly ReadProfile[];
  readonly runs: readonly ShownRun[];
  readonly lines: readonly string[];
  /** Votes, and what was learnt from helpers before. */
  readonly figures: readonly string[];
}> {
  const files = createGuardedFiles({ forbidden: [home.root] });
  const found = await new HelperBook(store.scope(HELPERS_SCOPE)).all();
  const runs = found.filter(({ series }) => series === undefined);
  return {
    profiles: await createProfileBook(files, () => config.agents.defaults.workspace).list(),
    runs: runs.map(({ id, label, plan, parent, state, startedAt, endedAt, result }) => ({
      ...{ id, label, kind: plan.kind, session: parent.session, state, startedAt },
      ...(endedAt === undefined ? {} : { endedAt }),
      ...(result === undefined ? {} : { result }),
    })),
    figures: await figuresOf(store, config),
    lines: runs.map((run) => `${helperLine(run, clock.now())} [${run.parent.session}]`),
  };
}

async function figuresOf(store: StateStore, config: Config): Promise<readonly string[]> {
  const calibrator = new Calibrator({
    state: store.scope(CALIBRATION_SCOPE),
    settings: () => config.agents.calibration,
    configured: () => configuredOf(config),
  });
  return [...(await new VoteBook(store.scope(VOTES_SCOPE)).lines()), ...(await calibrator.lines())];
}

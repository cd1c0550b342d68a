// The helpers of a home and their profiles, as a command beside the gateway sees them.

import { HELPERS_SCOPE, HelperBook } from '../automation/helper-book.ts';
import { createProfileBook } from '../automation/profile-book.ts';
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
  workspace: string,
): Promise<{
  readonly profiles: readonly ReadProfile[];
  readonly runs: readonly ShownRun[];
  readonly lines: readonly string[];
}> {
  const files = createGuardedFiles({ forbidden: [home.root] });
  const found = await new HelperBook(store.scope(HELPERS_SCOPE)).all();
  const runs = found.filter(({ series }) => series === undefined);
  return {
    profiles: await createProfileBook(files, () => workspace).list(),
    runs: runs.map(({ id, label, plan, parent, state, startedAt, endedAt, result }) => ({
      ...{ id, label, kind: plan.kind, session: parent.session, state, startedAt },
      ...(endedAt === undefined ? {} : { endedAt }),
      ...(result === undefined ? {} : { result }),
    })),
    lines: runs.map((run) => `${helperLine(run, clock.now())} [${run.parent.session}]`),
  };
}

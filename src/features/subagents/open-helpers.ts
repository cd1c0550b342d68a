// The helpers of a home and their profiles, as a command beside the gateway sees them.

import type { OpenedState } from '../../app/state.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import type { OpenRows } from '../../kernel/rows.ts';
import { createGuardedFiles } from '../../lib/files/guarded-files.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { Calibrator, Votes } from './learnt.ts';
import { configuredOf } from './rules/calibration.ts';
import type { ReadProfile } from './rules/profile.ts';
import { type HelperRun, helperLine } from './rules/subagent.ts';
import { openSubagents } from './subagent-rows.ts';
import { createProfileBook } from './terms.ts';

type ShownRun = Pick<HelperRun, 'id' | 'label' | 'state' | 'startedAt' | 'endedAt' | 'result'> & {
  readonly kind: HelperRun['plan']['kind'];
  readonly session: string;
};

export async function openHelpers(
  { rows }: Pick<OpenedState, 'rows'>,
  { home, clock }: { readonly home: Home; readonly clock: Clock },
  config: Config,
): Promise<{
  readonly profiles: readonly ReadProfile[];
  readonly runs: readonly ShownRun[];
  /** With where each was started. */
  readonly lines: readonly { readonly text: string; readonly session: SessionKey }[];
  /** Votes, and what was learnt from helpers before. */
  readonly figures: readonly string[];
}> {
  const files = createGuardedFiles({ forbidden: [home.root] });
  const found = await openSubagents(rows).runs.list();
  const runs = found.filter(({ series }) => series === undefined);
  return {
    profiles: await createProfileBook(files, () => config.agents.defaults.workspace).list(),
    runs: runs.map(({ id, label, plan, parent, state, startedAt, endedAt, result }) => ({
      ...{ id, label, kind: plan.kind, session: parent.session, state, startedAt },
      ...(endedAt === undefined ? {} : { endedAt }),
      ...(result === undefined ? {} : { result }),
    })),
    figures: await figuresOf(rows, config),
    lines: runs.map((run) => ({
      text: helperLine(run, clock.now()),
      session: run.parent.session,
    })),
  };
}

async function figuresOf(rows: OpenRows, config: Config): Promise<readonly string[]> {
  const calibrator = new Calibrator({
    rows,
    settings: () => config.agents.calibration,
    configured: () => configuredOf(config),
  });
  return [...(await new Votes(rows).lines()), ...(await calibrator.lines())];
}

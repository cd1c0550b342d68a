// Notes what helpers and workflows took once they are over, for the calibrator. It fails nobody: what
// cannot be noted is not known.

import type { SessionKey, TurnId } from '../../kernel/message/ids.ts';
import type { TokenUsage, TranscriptEntry } from '../../kernel/message/transcript.ts';
import type { Rows } from '../../kernel/rows.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Definition, WorkflowLimits } from '../workflows/rules/definition.ts';
import type { WorkflowEnding, WorkflowRun } from '../workflows/rules/workflow.ts';
import type { Calibrator } from './calibrator.ts';
import {
  type Configured,
  type Execution,
  groupOf,
  helperKind,
  takenBy,
  taskTypeOf,
} from './rules/calibration.ts';
import type { HelperRun } from './rules/subagent.ts';

export type ExperienceDeps = {
  readonly calibrator: Pick<Calibrator, 'isOn' | 'note'>;
  readonly runs: Pick<Rows<HelperRun>, 'get'>;
  readonly sessions: Pick<SessionStore, 'turn'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** What holds where nothing less was asked. */
  configured(): Configured;
  /** The name of the model with its prefix, of one as in terms. */
  modelOf(name: string | undefined): string;
  /** In millionths of the currency; undefined: nobody knows its price. */
  costOf(model: string, usage: TokenUsage): number | undefined;
};

export type Experience = {
  helperEnded(
    run: HelperRun,
    turn: { readonly session: SessionKey; readonly id: TurnId },
    isDone: boolean,
  ): Promise<void>;
  workflowEnded(
    run: WorkflowRun,
    how: Exclude<WorkflowEnding, 'cancelled'>,
    about: { readonly most: WorkflowLimits; definition(): Promise<Definition | undefined> },
  ): Promise<void>;
};

export function createExperience(deps: ExperienceDeps): Experience {
  const { calibrator, runs, sessions, clock, log, configured } = deps;

  async function noted(id: string, made: () => Promise<Execution>): Promise<void> {
    if (!calibrator.isOn()) return;
    try {
      await calibrator.note(await made());
    } catch (error) {
      log.warn('what it took is not noted', { of: id, error });
    }
  }

  const costIn = (entries: readonly TranscriptEntry[]) =>
    entries.reduce((sum, entry) => {
      if (entry.role !== 'assistant' || entry.usage === undefined) return sum;
      return sum + (deps.costOf(entry.model, entry.usage) ?? 0);
    }, 0);

  return {
    helperEnded: (run, turn, isDone) =>
      noted(run.id, async () => {
        const { id, terms, plan, series, depth, startedAt } = run;
        const above = series === undefined ? undefined : await runs.get(series);
        const kind = helperKind(above?.plan.kind ?? 'task', plan);
        const entries = await sessions.turn(turn.session, turn.id);
        const most = configured();
        const limits = {
          maxRounds: Math.min(terms.rounds ?? most.rounds, most.rounds),
          maxTokens: terms.tokens,
        };
        const now = clock.now();
        return {
          ...{ id, group: groupOf(kind, terms.profile), model: deps.modelOf(terms.model) },
          ...takenBy(entries, limits, isDone),
          ...limits,
          ...{ micros: costIn(entries), ms: now - startedAt, depth, at: now },
        };
      }),

    workflowEnded: ({ id, workflow, state, starter, startedAt }, how, about) =>
      noted(id, async () => {
        const { most } = about;
        const definition = await about.definition();
        const done = (definition?.workflow.steps ?? []).filter(({ id: step }) =>
          Object.hasOwn(state.steps, step),
        );
        const tools = done.flatMap((step) => (step.kind === 'tool' ? [step.tool] : []));
        const now = clock.now();
        return {
          ...{ id, group: `workflow ${workflow}`, type: taskTypeOf(tools) },
          ...{ model: deps.modelOf(starter.model), rounds: state.number, tokens: state.tokens },
          maxRounds: most.steps ?? state.number,
          maxTokens: most.tokens ?? state.tokens,
          ...{ outcome: how, micros: state.micros, ms: now - startedAt },
          ...{ tools: tools.length, depth: 1, at: now },
        };
      }),
  };
}

// Stores the usage of subagents, steps and workflows, the newest of each type of task and model,
// and derives limits from it by rules/calibration.ts. While it is disabled nothing is read or
// stored.

import { z } from 'zod';
import type { Config } from '../../kernel/config/config.ts';
import type { Kernel } from '../../kernel/feature.ts';
import type { SessionKey, TurnId } from '../../kernel/message/ids.ts';
import type { TokenUsage, TranscriptEntry } from '../../kernel/message/transcript.ts';
import type { VoteRecord } from '../../kernel/observe/telemetry.ts';
import { jsonRows, type OpenRows, type Rows } from '../../kernel/rows.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import { listShape, number, rowShape, text } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import {
  type Advice,
  advise,
  type Configured,
  configuredOf,
  type Execution,
  groupOf,
  type SubagentKind,
  subagentKind,
  takenBy,
} from './rules/calibration.ts';
import type { SubagentRun } from './rules/subagent.ts';
import { type Verdict, VOTE_TARGET, votersFor } from './rules/vote.ts';
import type { CalibrationConfig } from './settings.ts';

const RUN = rowShape<Execution>({
  ...{ id: text, group: text, type: text, model: text, outcome: text },
  ...{ rounds: number, maxRounds: number, tokens: number, maxTokens: number },
  ...{ micros: number, ms: number, tools: number, depth: number, at: number },
});
const RUNS = listShape(RUN);

export class Calibrator {
  readonly #config: () => Config;
  /** By type of task and model. */
  readonly #runs: Rows<readonly Execution[]>;

  constructor(rows: OpenRows, config: () => Config) {
    this.#config = config;
    this.#runs = rows({ ...jsonRows(RUNS), scope: 'calibration', prefix: 'runs:' });
  }

  get #settings(): CalibrationConfig {
    return this.#config().agents.calibration;
  }

  isOn(): boolean {
    return this.#settings.enabled;
  }

  /** The limits without advice. */
  configured(): Configured {
    return configuredOf(this.#config());
  }

  /** A repetition of the same run changes nothing. */
  async note(run: Execution): Promise<void> {
    const { enabled, keep } = this.#settings;
    if (!enabled) return;
    await this.#runs.change(`${run.type}|${run.model}`, (known = []) =>
      known.some(({ id }) => id === run.id) ? undefined : [...known, run].slice(-keep),
    );
  }

  /** Undefined where it is disabled, or there is too little data. `model`: with its prefix. */
  async advice(
    kind: SubagentKind,
    profile: string | undefined,
    model: string,
  ): Promise<Advice | undefined> {
    if (!this.isOn()) return undefined;
    const group = groupOf(kind, profile);
    const runs = (await this.#all()).filter((run) => run.group === group && run.model === model);
    const advice = advise(runs, this.configured());
    return advice.confidence >= this.#settings.minConfidence ? advice : undefined;
  }

  /** For people: a line for each group and model; empty while it is disabled. */
  async lines(): Promise<readonly string[]> {
    if (!this.isOn()) return [];
    const { minConfidence } = this.#settings;
    const groups = Map.groupBy(await this.#all(), ({ group, model }) => `${group}, ${model}`);
    if (groups.size === 0) return [t`Calibration: on, nothing is known yet`];
    return [...groups].map(([name, runs]) => {
      const advice = advise(runs, this.configured());
      const isUsed = advice.confidence >= minConfidence && !name.startsWith('workflow ');
      return t`Calibration of ${name}: ${lineOf(runs, advice)}${isUsed ? '' : t`, not applied`}`;
    });
  }

  /** Oldest first. */
  async #all(): Promise<readonly Execution[]> {
    const runs = (await this.#runs.list()).flat();
    return runs.sort((one, other) => one.at - other.at);
  }
}

function lineOf(runs: readonly Execution[], advice: Advice): string {
  const done = runs.filter(({ outcome }) => outcome === 'done').length;
  const { rounds, tokens, depth, confidence } = advice;
  const types = [...new Set(runs.map(({ type }) => type))].join(', ');
  return (
    t`${runs.length} runs (${types}), ${done} done; at most ${rounds} rounds and ${tokens} tokens, ` +
    t`depth ${depth}, confidence ${confidence.toFixed(2)}`
  );
}

// Records the usage of ended subagents and workflows for the calibrator. Errors are ignored: what
// cannot be recorded is missing.

type ExperienceDeps = Pick<Kernel, 'clock' | 'log'> & {
  readonly calibrator: Pick<Calibrator, 'isOn' | 'note' | 'configured'>;
  readonly runs: Pick<Rows<SubagentRun>, 'get'>;
  readonly sessions: Pick<SessionStore, 'turn'>;
  /** The full model name for the one in the terms. */
  modelOf(name: string | undefined): string;
  /** In millionths of the currency; undefined: the price is unknown. */
  costOf(model: string, usage: TokenUsage): number | undefined;
};

export type Experience = ReturnType<typeof createExperience>;

export function createExperience(deps: ExperienceDeps) {
  const { calibrator, runs, sessions, clock, log } = deps;

  async function noted(id: string, made: () => Promise<Execution>): Promise<void> {
    if (!calibrator.isOn()) return;
    try {
      await calibrator.note(await made());
    } catch (error) {
      log.warn('usage not stored', { of: id, error });
    }
  }

  const costIn = (entries: readonly TranscriptEntry[]) =>
    entries.reduce((sum, entry) => {
      if (entry.role !== 'assistant' || entry.usage === undefined) return sum;
      return sum + (deps.costOf(entry.model, entry.usage) ?? 0);
    }, 0);

  return {
    subagentEnded: (
      run: SubagentRun,
      turn: { readonly session: SessionKey; readonly id: TurnId },
      isDone: boolean,
    ): Promise<void> =>
      noted(run.id, async () => {
        const { id, terms, plan, series, depth, startedAt } = run;
        const above = series === undefined ? undefined : await runs.get(series);
        const kind = subagentKind(above?.plan.kind ?? 'task', plan);
        const entries = await sessions.turn(turn.session, turn.id);
        const most = calibrator.configured();
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
    /** For other work; `id` names it in the log where recording fails. */
    noted,
    modelOf: deps.modelOf,
  };
}

// Results of votes on steps, as sums over all of them, for /status and the command line.

const SUMS = 'sums';

const SUMS_ROW = z.object({
  /** Decided by the gate, by a lead, or undecided. */
  ...{ gate: number, lead: number, undecided: number },
  /** Ballots: votes, votes for the leader, and unusable answers. */
  ...{ votes: number, agreed: number, flagged: number },
});
type Sums = Readonly<z.infer<typeof SUMS_ROW>>;
const NONE: Sums = { gate: 0, lead: 0, undecided: 0, votes: 0, agreed: 0, flagged: 0 };
const PERCENT = 100;

type VoteOver = Pick<VoteRecord, 'outcome' | 'votes' | 'flagged'>;

export class Votes {
  readonly #sums: Rows<Sums>;
  readonly #over: (vote: VoteOver) => void;

  /** `over` is called for each vote that ended. */
  constructor(rows: OpenRows, over: (vote: VoteOver) => void = () => undefined) {
    this.#sums = rows({ ...jsonRows<Sums>(SUMS_ROW), scope: 'votes', prefix: '' });
    this.#over = over;
  }

  /** Ignores a vote that has not ended. */
  async note(verdict: Verdict): Promise<void> {
    if (verdict.kind === 'ask') return;
    const how = verdict.kind === 'won' ? verdict.by : 'undecided';
    const { votes, agreed, flagged } = verdict.figures;
    this.#over({ outcome: how, votes, flagged });
    await this.#sums.change(SUMS, (sums = NONE) => ({
      ...{ ...sums, [how]: sums[how] + 1, votes: sums.votes + votes },
      ...{ agreed: sums.agreed + agreed, flagged: sums.flagged + flagged },
    }));
  }

  /** For people; empty where there was no vote. */
  async lines(): Promise<readonly string[]> {
    const { gate, lead, undecided, votes, agreed, flagged } = (await this.#sums.get(SUMS)) ?? NONE;
    const all = gate + lead + undecided;
    if (all === 0) return [];
    const rate = votes === 0 ? 0 : agreed / votes;
    const voters = votersFor(rate, VOTE_TARGET);
    const sure = voters === undefined ? t`more than 15` : `${voters}`;
    const answers = ((votes + flagged) / all).toFixed(1);
    return [
      t`Votes on steps: ${all} (${gate} accepted by the pilot voters, ${lead} won by a lead, ${undecided} undecided); ` +
        t`${answers} answers each, ${Math.round(rate * PERCENT)} % agree, ${flagged} not usable; ` +
        t`voters for 99.9 %: ${sure}`,
    ];
  }
}

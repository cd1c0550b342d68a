// Keeps what helpers, steps and workflows took, the newest of each type of task and model, and asks the
// rules in core/calibration.ts what that says of the next one. While it is off nothing is read or kept.

import { jsonRows, type OpenRows, type Rows } from '../../kernel/rows.ts';
import { listShape, number, rowShape, text } from '../../lib/json/json.ts';
import {
  type Advice,
  advise,
  type Configured,
  type Execution,
  groupOf,
  type HelperKind,
} from './rules/calibration.ts';
import type { CalibrationConfig } from './settings.ts';

const RUN = rowShape<Execution>({
  ...{ id: text, group: text, type: text, model: text, outcome: text },
  ...{ rounds: number, maxRounds: number, tokens: number, maxTokens: number },
  ...{ micros: number, ms: number, tools: number, depth: number, at: number },
});
const RUNS = listShape(RUN);

export type CalibratorDeps = {
  readonly rows: OpenRows;
  settings(): CalibrationConfig;
  /** What holds without advice. */
  configured(): Configured;
};

export class Calibrator {
  readonly #deps: CalibratorDeps;
  /** By type of task and model. */
  readonly #runs: Rows<readonly Execution[]>;

  constructor(deps: CalibratorDeps) {
    this.#deps = deps;
    this.#runs = deps.rows({ ...jsonRows(RUNS), scope: 'calibration', prefix: 'runs:' });
  }

  isOn(): boolean {
    return this.#deps.settings().enabled;
  }

  /** The same one again changes nothing. */
  async note(run: Execution): Promise<void> {
    const { enabled, keep } = this.#deps.settings();
    if (!enabled) return;
    await this.#runs.change(`${run.type}|${run.model}`, (known = []) =>
      known.some(({ id }) => id === run.id) ? undefined : [...known, run].slice(-keep),
    );
  }

  /** Undefined where it is off, or too little is known. `model`: with its prefix. */
  async advice(
    kind: HelperKind,
    profile: string | undefined,
    model: string,
  ): Promise<Advice | undefined> {
    const { settings, configured } = this.#deps;
    if (!this.isOn()) return undefined;
    const group = groupOf(kind, profile);
    const runs = (await this.#all()).filter((run) => run.group === group && run.model === model);
    const advice = advise(runs, configured());
    return advice.confidence >= settings().minConfidence ? advice : undefined;
  }

  /** For people: a line for each group and model; nothing while it is off. */
  async lines(): Promise<readonly string[]> {
    if (!this.isOn()) return [];
    const { settings, configured } = this.#deps;
    const groups = Map.groupBy(await this.#all(), ({ group, model }) => `${group}, ${model}`);
    if (groups.size === 0) return ['Calibration: on, nothing is known yet'];
    return [...groups].map(([name, runs]) => {
      const advice = advise(runs, configured());
      const isUsed = advice.confidence >= settings().minConfidence && !name.startsWith('workflow ');
      return `Calibration of ${name}: ${lineOf(runs, advice)}${isUsed ? '' : ', not applied'}`;
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
    `${runs.length} runs (${types}), ${done} done; at most ${rounds} rounds and ${tokens} tokens, ` +
    `depth ${depth}, confidence ${confidence.toFixed(2)}`
  );
}

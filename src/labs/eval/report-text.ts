// Results of evaluations: one JSON file per run, replaced atomically, and their text form for a
// terminal.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { textTable } from '../../cli/terminal.ts';
import { makeFolder, writeAtomic } from '../../lib/files/files.ts';
import { parseJson } from '../../lib/json/json.ts';
import { type EvalPlot, type EvalResult, type EvalScore, evalResult } from './rules/result.ts';

export type StoredResult = { readonly name: string; readonly result: EvalResult };

type ReadResults = {
  /** Oldest first. */
  readonly results: readonly StoredResult[];
  /** Names of files that are not results of this version. */
  readonly unread: readonly string[];
};

const RESULT_FILE = /^[a-z]+_[\dTZ-]+\.json$/;

const resultName = (result: Pick<EvalResult, 'benchmark' | 'startedAt'>) =>
  `${result.benchmark}_${result.startedAt.replace(/[:.]/g, '-')}.json`;

/** Returns the path of the file. */
export async function keepResult(folder: string, result: EvalResult): Promise<string> {
  await makeFolder(folder);
  const path = join(folder, resultName(result));
  await writeAtomic(path, `${JSON.stringify(result, undefined, 2)}\n`);
  return path;
}

export async function readResults(folder: string): Promise<ReadResults> {
  const names = await readdir(folder).catch(() => []);
  const files = names.filter((name) => RESULT_FILE.test(name));
  const read = await Promise.all(
    files.map(async (name) => ({ name, result: await readResult(join(folder, name)) })),
  );
  const results = read.flatMap(({ name, result }) =>
    result === undefined ? [] : [{ name, result }],
  );
  return {
    results: results.sort((one, other) =>
      one.result.startedAt.localeCompare(other.result.startedAt),
    ),
    unread: read.filter(({ result }) => result === undefined).map(({ name }) => name),
  };
}

async function readResult(path: string): Promise<EvalResult | undefined> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return evalResult.safeParse(parseJson(text)).data;
}

// Results as lines for a terminal: one in full, or many side by side.

const BAR_CELLS = 20;
const SHADES = ['·', '░', '▒', '▓', '█'] as const;

export const percent = (share: number) => `${(share * 100).toFixed(1)} %`;

export function figureText(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(value < 10 ? 3 : 1);
}

export function scoreText({
  right,
  total,
  errors,
  skipped,
  rate,
  low,
  high,
  chance,
}: EvalScore): string {
  const beside = [
    ...(chance === undefined ? [] : [`by guessing ${percent(chance)}`]),
    ...(errors === 0 ? [] : [`${errors} errors not counted`]),
    ...(skipped === 0 ? [] : [`${skipped} skipped`]),
  ];
  const more = beside.length === 0 ? '' : `; ${beside.join(', ')}`;
  if (rate === undefined) return `no answers${more}`;
  return `${percent(rate)} (${right} of ${total}; 95 % interval ${percent(low)} to ${percent(high)})${more}`;
}

export function costText({
  calls,
  inputTokens,
  outputTokens,
  money,
  currency,
  unpriced,
}: EvalResult['cost']) {
  const unknown = unpriced === 0 ? '' : `, ${unpriced} calls with unknown price`;
  return `${calls} calls, ${inputTokens} + ${outputTokens} tokens, ${money.toFixed(4)} ${currency}${unknown}`;
}

export function resultLines(result: EvalResult): readonly string[] {
  const { benchmark, variant, model, status, because, figures, score, cost, plots } = result;
  const state = status === 'complete' ? '' : `  PARTIAL: ${because}`;
  return [
    `${benchmark} ${variant}  ${model}${state}`,
    `  right: ${scoreText(score)}`,
    ...Object.entries(figures).map(([name, value]) => `  ${name}: ${figureText(value)}`),
    `  cost: ${costText(cost)}`,
    ...plots.flatMap(plotLines).map((line) => `  ${line}`),
  ];
}

function plotLines(plot: EvalPlot): readonly string[] {
  if (plot.kind === 'bars') {
    const width = Math.max(0, ...plot.bars.map(({ label }) => label.length));
    const bars = plot.bars.map(({ label, value }) => {
      const full = Math.round(value * BAR_CELLS);
      return `  ${label.padEnd(width)}  ${'█'.repeat(full)}${'·'.repeat(BAR_CELLS - full)}  ${percent(value)}`;
    });
    return [plot.title, ...bars];
  }
  if (plot.kind === 'grid') {
    const width = Math.max(0, ...plot.rows.map((row) => row.length));
    const cell = (row: string, column: string) => {
      const found = plot.cells.find((one) => one.row === row && one.column === column);
      const shown = found === undefined ? '-' : percent(found.value);
      return shown.padStart(Math.max(8, column.length));
    };
    const head = plot.columns.map((column) => column.padStart(Math.max(8, column.length)));
    return [
      plot.title,
      `  ${''.padEnd(width)} ${head.join(' ')}`,
      ...plot.rows.map(
        (row) =>
          `  ${row.padStart(width)} ${plot.columns.map((column) => cell(row, column)).join(' ')}`,
      ),
    ];
  }
  const most = Math.max(...plot.points.map(({ y }) => y), Number.MIN_VALUE);
  const shades = plot.points.map(
    ({ y }) => SHADES[Math.round((y / most) * (SHADES.length - 1))] ?? '·',
  );
  return [`${plot.title} (█ = ${figureText(most)})`, `  ${shades.join('')}`];
}

/** One line per run, by benchmark; the best complete runs first. */
export function comparisonLines(results: readonly StoredResult[]): readonly string[] {
  const kinds = Map.groupBy(results, ({ result }) => kindOf(result));
  return [...kinds].flatMap(([kind, runs]) => [
    kind,
    ...textTable(runs.toSorted(byRate).map(({ result }) => rowOf(result))),
    '',
  ]);
}

/** Labels of the options of a benchmark. */
const OPTIONS: Readonly<Record<string, string>> = {
  disks: 'disks',
  samples: 'moves asked for',
  aheadBy: 'votes ahead',
  maxVotes: 'votes at most',
  gate: 'two who agree are enough',
  sizes: 'characters of text',
  depths: 'depths in %',
  needles: 'facts at once',
  aggregate: 'questions about the whole text',
  tasks: 'tasks',
  depth: 'files of a chain',
  tries: 'answers to a task',
};

function optionText([name, value]: readonly [string, string | number | boolean]): string {
  const words = OPTIONS[name] ?? name;
  const said = typeof value === 'boolean' ? (value ? 'yes' : 'no') : value;
  return `${words}: ${said}`;
}

/** Identifies comparable runs: those of the same tasks. */
export const kindOf = ({ benchmark, variant, seed, options }: EvalResult) => {
  const set = Object.entries(options).map(optionText);
  return `${benchmark} ${variant} (${[...set, `seed ${seed}`].join(', ')})`;
};

const byRate = (one: StoredResult, other: StoredResult) =>
  (other.result.score.rate ?? -1) - (one.result.score.rate ?? -1);

function rowOf({ model, startedAt, status, score, cost }: EvalResult): readonly string[] {
  const { rate, low, high, errors, total } = score;
  const between = rate === undefined ? '' : `${percent(low)} to ${percent(high)}`;
  return [
    `  ${model}`,
    startedAt.slice(0, 16).replace('T', ' '),
    status === 'complete' ? '' : 'PARTIAL',
    rate === undefined ? '-' : percent(rate),
    between,
    `${total} answered`,
    errors === 0 ? '' : `${errors} errors`,
    `${cost.money.toFixed(4)} ${cost.currency}`,
  ];
}

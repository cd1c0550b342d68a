// The result of a benchmark: one versioned JSON document, complete or partial. Errors of the
// model's service are counted apart from wrong answers.

import { z } from 'zod';
import { wilson, windows } from './grade.ts';

export const EVAL_VERSION = 1;
const BENCHMARKS = ['hanoi', 'haystack', 'learn', 'sprint'] as const;

/** `undecided`: a vote without a winner; `skipped`: it does not fit the model. */
const STATES = ['right', 'wrong', 'undecided', 'skipped', 'error'] as const;

const evalItem = z.object({
  id: z.string(),
  /** The group in which it is counted. */
  group: z.string(),
  state: z.enum(STATES),
  wanted: z.string(),
  /** The answer, or the error. */
  got: z.string(),
  ms: z.number(),
  /** Figures specific to the benchmark, by name. */
  counts: z.record(z.string(), z.number()),
});
export type EvalItem = z.infer<typeof evalItem>;

const point = z.object({ x: z.number(), y: z.number() });
const evalPlot = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('line'),
    title: z.string(),
    xLabel: z.string(),
    yLabel: z.string(),
    points: z.array(point),
  }),
  /** Shares from 0 to 1, with confidence intervals. */
  z.object({
    kind: z.literal('bars'),
    title: z.string(),
    bars: z.array(
      z.object({ label: z.string(), value: z.number(), low: z.number(), high: z.number() }),
    ),
  }),
  /** Shares from 0 to 1; cells that were not tried are left out. */
  z.object({
    kind: z.literal('grid'),
    title: z.string(),
    rows: z.array(z.string()),
    columns: z.array(z.string()),
    cells: z.array(z.object({ row: z.string(), column: z.string(), value: z.number() })),
  }),
]);
export type EvalPlot = z.infer<typeof evalPlot>;

const score = z.object({
  right: z.number(),
  /** Number of answered items, without errors and skipped ones. */
  total: z.number(),
  errors: z.number(),
  skipped: z.number(),
  /** Left out where nothing was answered. */
  rate: z.number().optional(),
  /** The 95 % confidence interval of the rate. */
  low: z.number(),
  high: z.number(),
  /** The rate of guessing; left out where it is next to zero. */
  chance: z.number().optional(),
});
export type EvalScore = z.infer<typeof score>;

export const evalResult = z.object({
  version: z.literal(EVAL_VERSION),
  benchmark: z.enum(BENCHMARKS),
  /** The variant of the benchmark. */
  variant: z.string(),
  status: z.enum(['complete', 'partial']),
  /** Why it is partial. */
  because: z.string().optional(),
  startedAt: z.string(),
  endedAt: z.string(),
  /** The version of nanobot. */
  program: z.string(),
  model: z.string(),
  seed: z.number(),
  options: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  planned: z.number(),
  score,
  figures: z.record(z.string(), z.number()),
  plots: z.array(evalPlot),
  cost: z.object({
    calls: z.number(),
    inputTokens: z.number(),
    outputTokens: z.number(),
    money: z.number(),
    currency: z.string(),
    /** Calls whose model has no known price, or whose usage nobody reported. */
    unpriced: z.number(),
  }),
  items: z.array(evalItem),
});
export type EvalResult = z.infer<typeof evalResult>;
export type EvalCost = EvalResult['cost'];

export function scoreOf(items: readonly EvalItem[], chance?: number): EvalScore {
  const count = (state: EvalItem['state']) => items.filter((item) => item.state === state).length;
  const right = count('right');
  const total = right + count('wrong') + count('undecided');
  return {
    right,
    total,
    errors: count('error'),
    skipped: count('skipped'),
    ...(total === 0 ? {} : { rate: right / total }),
    ...wilson(right, total),
    ...(chance === undefined ? {} : { chance }),
  };
}

/** A bar for each group, in order of appearance; empty where nothing was answered. */
export function barsOf(title: string, items: readonly EvalItem[]): readonly EvalPlot[] {
  const groups = [...Map.groupBy(items, ({ group }) => group)];
  const bars = groups.flatMap(([label, some]) => {
    const { rate, low, high } = scoreOf(some);
    return rate === undefined ? [] : [{ label, value: rate, low, high }];
  });
  return bars.length === 0 ? [] : [{ kind: 'bars', title, bars }];
}

const WINDOW = 5;

/** Moving averages; empty where there are too few values for a line. */
export function lineOf(
  title: string,
  xLabel: string,
  yLabel: string,
  values: readonly number[],
): readonly EvalPlot[] {
  const points = windows(values, WINDOW).map((y, at) => ({ x: at + WINDOW, y }));
  if (points.length < 2) return [];
  return [{ kind: 'line', title: `${title}, means of ${WINDOW}`, xLabel, yLabel, points }];
}

export const sumOf = (items: readonly EvalItem[], name: string) =>
  items.reduce((sum, { counts }) => sum + (counts[name] ?? 0), 0);

/** Drops unknown figures. */
export function known(
  figures: Readonly<Record<string, number | undefined>>,
): Readonly<Record<string, number>> {
  const entries = Object.entries(figures).flatMap(([name, value]) =>
    value === undefined || !Number.isFinite(value) ? [] : [[name, value] as const],
  );
  return Object.fromEntries(entries);
}

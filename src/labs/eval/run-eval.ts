// Runs one benchmark from the command line until it ends, is interrupted or reaches its budget; partial
// results are valid and stored while it runs. Also prints the report over all results.

import { SpendingRefusedError } from '../../agent/spending.ts';
import { CommandFailure, EXIT, printable, type Terminal } from '../../cli/terminal.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import type { Benchmark, Trial } from './eval.ts';
import { EVAL_VERSION, type EvalItem, type EvalResult, scoreOf } from './rules/result.ts';
import type { CostCounter } from './spending.ts';

type BenchmarkRun = {
  readonly trial: Trial;
  readonly cost: Pick<CostCounter, 'total'>;
  /** Version of nanobot. */
  readonly program: string;
  keep(result: EvalResult): Promise<void>;
  /** At most once a second. */
  progress(done: EvalItem, items: readonly EvalItem[], planned: number): void;
};

type Progress = {
  readonly startedAt: number;
  readonly items: readonly EvalItem[];
  /** Why it is not whole. */
  readonly because: string | undefined;
};

/** Errors in a row after which nothing more is to be hoped for. */
const MAX_ERRORS_IN_A_ROW = 5;
const KEEP_EVERY_MS = 10_000;
const TELL_EVERY_MS = 1000;

/** Never throws for the sake of the model: the result says what happened. */
async function runBenchmark(
  benchmark: Benchmark,
  run: BenchmarkRun,
  signal: AbortSignal,
): Promise<EvalResult> {
  const { clock } = run.trial;
  const startedAt = clock.now();
  const items: EvalItem[] = [];
  const result = (because?: string) => resultOf(benchmark, run, { startedAt, items, because });
  const due = { keep: clock.monotonic() + KEEP_EVERY_MS, tell: clock.monotonic() + TELL_EVERY_MS };
  const because = await untilItEnds(benchmark, run, signal, async (item) => {
    items.push(item);
    const now = clock.monotonic();
    if (now >= due.tell) {
      due.tell = now + TELL_EVERY_MS;
      run.progress(item, items, benchmark.planned);
    }
    if (now >= due.keep) {
      due.keep = now + KEEP_EVERY_MS;
      await run.keep(result('it is still running, or was cut off'));
    }
  });
  const whole = result(because);
  await run.keep(whole);
  return whole;
}

function resultOf(
  benchmark: Benchmark,
  { trial, cost, program }: BenchmarkRun,
  { startedAt, items, because }: Progress,
): EvalResult {
  const { figures, plots } = benchmark.summary(items);
  return {
    version: EVAL_VERSION,
    benchmark: benchmark.benchmark,
    variant: benchmark.variant,
    status: because === undefined ? 'complete' : 'partial',
    ...(because === undefined ? {} : { because }),
    startedAt: new Date(startedAt).toISOString(),
    endedAt: new Date(trial.clock.now()).toISOString(),
    program,
    model: trial.subject.model,
    seed: benchmark.seed,
    options: benchmark.options,
    planned: benchmark.planned,
    score: scoreOf(items, benchmark.chance),
    figures: { ...figures },
    plots: [...plots],
    cost: cost.total(),
    items: [...items],
  };
}

/** Why it ended early; undefined where it did not. */
async function untilItEnds(
  benchmark: Benchmark,
  { trial }: BenchmarkRun,
  signal: AbortSignal,
  take: (item: EvalItem) => Promise<void>,
): Promise<string | undefined> {
  let errors = 0;
  try {
    for await (const item of benchmark.run(trial, signal)) {
      await take(item);
      errors = item.state === 'error' ? errors + 1 : 0;
      if (signal.aborted) return 'it was stopped';
      if (errors >= MAX_ERRORS_IN_A_ROW) return `${errors} errors in a row: ${item.got}`;
    }
    return undefined;
  } catch (error) {
    if (signal.aborted) return 'it was stopped';
    if (error instanceof SpendingRefusedError) return error.text;
    if (error instanceof NanobotError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

/** What every benchmark takes. */
export type EvalFlags = {
  readonly model?: string;
  readonly seed: number;
  readonly maxCost?: number;
  readonly maxTokens: number;
  readonly json?: boolean;
};

/** @throws CommandFailure where the result is partial */
export async function runEval(terminal: Terminal, benchmark: Benchmark, flags: EvalFlags) {
  const { openHome } = await import('../../kernel/config/files/first-run.ts');
  const { openEval } = await import('./build-eval.ts');
  const { programVersion } = await import('../../kernel/config/files/package-files.ts');
  const { keepResult, resultLines } = await import('./report-text.ts');
  const { untilStopped } = await import('../../cli/terminal.ts');
  const { home, env } = terminal;
  const { loaded } = await openHome(home, env);
  const resources = new AsyncDisposableStack();
  try {
    const { model, maxCost, maxTokens } = flags;
    const wish = { home, env, loaded, model, maxCost, maxTokens, name: benchmark.benchmark };
    const { trial, cost } = await openEval(wish, resources);
    terminal.note(
      `${benchmark.benchmark} (${benchmark.variant}) with ${trial.subject.model}, ${benchmark.planned} items`,
    );
    let path = '';
    const result = await untilStopped(
      () => terminal.note('Stopping; what there is by now is kept.'),
      (signal) =>
        runBenchmark(
          benchmark,
          {
            ...{ trial, cost, program: programVersion() },
            async keep(kept) {
              path = await keepResult(home.eval, kept);
            },
            progress: (item, items, planned) =>
              terminal.note(progressLine(item, items, planned, cost.total().money)),
          },
          signal,
        ),
    );
    if (flags.json === true) terminal.printJson(result);
    else for (const line of resultLines(result)) terminal.print(printable(line));
    terminal.note(path);
    if (result.status === 'partial') {
      const stopped = result.because === 'it was stopped';
      throw new CommandFailure(
        stopped ? EXIT.interrupted : EXIT.failure,
        `partial: ${result.because}`,
      );
    }
  } finally {
    await resources.disposeAsync();
  }
}

function progressLine(
  { id, state }: EvalItem,
  items: readonly EvalItem[],
  planned: number,
  money: number,
): string {
  const right = items.filter((item) => item.state === 'right').length;
  const spent = money === 0 ? '' : `, ${money.toFixed(4)} spent`;
  return printable(`  ${items.length}/${planned}  ${right} right${spent}  (${id}: ${state})`);
}

export async function reportResults(
  terminal: Terminal,
  { html, json }: { readonly html?: string; readonly json?: boolean },
) {
  const { comparisonLines, readResults } = await import('./report-text.ts');
  const { results, unread } = await readResults(terminal.home.eval);
  for (const name of unread) terminal.note(`${name} is no result that this version can read`);
  if (results.length === 0) {
    throw new CommandFailure(
      EXIT.notFound,
      `no results in ${terminal.home.eval}; try: nanobot eval hanoi`,
    );
  }
  if (html !== undefined) {
    const { reportPage } = await import('./report-html.ts');
    const { writeAtomic } = await import('../../lib/files/files.ts');
    await writeAtomic(html, reportPage(results));
    return terminal.tell(html);
  }
  if (json === true) return terminal.printJson(results);
  for (const line of comparisonLines(results)) terminal.print(line);
}

// CONTRACT of a benchmark (tasks, subject, graded results), and running one from the command line
// until it ends, is interrupted or reaches its budget; partial results are valid and stored while
// it runs. Also prints the report over all results.

import { SpendingRefusedError } from '../../agent/agent.ts';
import {
  CommandFailure,
  EXIT,
  printable,
  type Terminal,
  untilStopped,
} from '../../cli/terminal.ts';
import { programVersion } from '../../kernel/config/files/home.ts';
import { NanobotError, ProviderError } from '../../kernel/message/errors.ts';
import { oneLine, shortened } from '../../lib/text/cut.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ModelRequest } from '../../providers/provider.ts';
import {
  EVAL_VERSION,
  type EvalItem,
  type EvalPlot,
  type EvalResult,
  scoreOf,
} from './rules/result.ts';
import type { CostCounter } from './spending.ts';
import type { Workbench } from './workbench.ts';

export type Question = {
  readonly system: string;
  /** The messages in order; the last one is the question. */
  readonly said: readonly { readonly role: 'user' | 'assistant'; readonly text: string }[];
  readonly temperature: NonNullable<ModelRequest['temperature']>;
};

export type Reply = {
  readonly text: string;
  /** The answer was cut off at its limit. */
  readonly isCut: boolean;
  readonly ms: number;
};

/** The model alone. */
export interface Subject {
  /** As configured, with its prefix. */
  readonly model: string;
  readonly contextTokens: number;
  /** Tokens of an answer. */
  readonly maxTokens: number;
  /** @throws ProviderError, SpendingRefusedError, the signal's reason */
  ask(question: Question, signal: AbortSignal): Promise<Reply>;
}

export type Trial = {
  readonly subject: Subject;
  readonly clock: Clock;
  /** Created at first use. */
  workbench(): Promise<Workbench>;
};

export type Summary = {
  readonly figures: Readonly<Record<string, number>>;
  readonly plots: readonly EvalPlot[];
};

/** A graded answer. */
export type Graded = Omit<EvalItem, 'id' | 'group' | 'wanted'>;

export type EvalTask = Pick<EvalItem, 'id' | 'group' | 'wanted'> & {
  /** @throws as `ask` */
  run(trial: Trial, signal: AbortSignal): Promise<Graded>;
};

export type Benchmark = Pick<EvalResult, 'benchmark' | 'variant' | 'seed' | 'options'> & {
  /** Number of planned items. */
  readonly planned: number;
  /** The rate of guessing. */
  readonly chance?: number;
  /** Run one after the other; a task may depend on the results before it. */
  tasks(): Iterable<EvalTask>;
  summary(items: readonly EvalItem[]): Summary;
};

// Runs one benchmark to its end, or as far as possible.

type BenchmarkRun = {
  readonly trial: Trial;
  readonly cost: Pick<CostCounter, 'total'>;
  keep(result: EvalResult): Promise<void>;
  /** Called at most once a second. */
  progress(done: EvalItem, items: readonly EvalItem[]): void;
};

/** After this many errors in a row the run ends. */
const MAX_ERRORS_IN_A_ROW = 5;
const KEEP_EVERY_MS = 10_000;
const TELL_EVERY_MS = 1000;
const MAX_SHOWN_CHARS = 600;

/** Does not throw on errors of the model: the result records them. */
async function runBenchmark(
  benchmark: Benchmark,
  { trial, cost, keep, progress }: BenchmarkRun,
  signal: AbortSignal,
): Promise<EvalResult> {
  const { clock, subject } = trial;
  const startedAt = new Date(clock.now()).toISOString();
  const items: EvalItem[] = [];
  const { tasks: _, summary, chance, ...about } = benchmark;
  const result = (because?: string): EvalResult => {
    const { figures, plots } = summary(items);
    return {
      ...{ version: EVAL_VERSION, ...about, startedAt, program: programVersion() },
      ...(because === undefined ? { status: 'complete' } : { status: 'partial', because }),
      endedAt: new Date(clock.now()).toISOString(),
      model: subject.model,
      score: scoreOf(items, chance),
      ...{ figures: { ...figures }, plots: [...plots], cost: cost.total(), items: [...items] },
    };
  };
  let [keptAt, toldAt] = [clock.monotonic(), clock.monotonic()];
  const because = await untilItEnds(benchmark, trial, signal, async (item) => {
    items.push(item);
    const now = clock.monotonic();
    if (now >= toldAt + TELL_EVERY_MS) {
      toldAt = now;
      progress(item, items);
    }
    if (now >= keptAt + KEEP_EVERY_MS) {
      keptAt = now;
      await keep(result('still running, or interrupted'));
    }
  });
  const whole = result(because);
  await keep(whole);
  return whole;
}

/** Why it ended early; undefined where it did not. */
async function untilItEnds(
  benchmark: Benchmark,
  trial: Trial,
  signal: AbortSignal,
  take: (item: EvalItem) => Promise<void>,
): Promise<string | undefined> {
  let errors = 0;
  try {
    for (const task of benchmark.tasks()) {
      const item = await attempt(task, trial, signal);
      await take(item);
      errors = item.state === 'error' ? errors + 1 : 0;
      if (signal.aborted) return 'stopped';
      if (errors >= MAX_ERRORS_IN_A_ROW) return `${errors} errors in a row: ${item.got}`;
    }
    return undefined;
  } catch (error) {
    if (signal.aborted) return 'stopped';
    if (error instanceof SpendingRefusedError) return error.text;
    if (error instanceof NanobotError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

/**
 * Records an error of the model's service as an item of state `error`.
 * @throws SpendingRefusedError, the signal's reason
 */
async function attempt(
  { id, group, wanted, run }: EvalTask,
  trial: Trial,
  signal: AbortSignal,
): Promise<EvalItem> {
  const named = { id, group, wanted };
  try {
    const made = await run(trial, signal);
    return { ...named, ...made, got: shown(made.got) };
  } catch (error) {
    if (signal.aborted || !(error instanceof ProviderError)) throw error;
    const got = `${error.failure.kind}: ${shown(error.message)}`;
    return { ...named, state: 'error', got, ms: 0, counts: {} };
  }
}

const shown = (text: string) => shortened(oneLine(text), MAX_SHOWN_CHARS, ' [...]');

/** The flags of every benchmark. */
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
  const { keepResult, resultLines } = await import('./report-text.ts');
  const { home, env } = terminal;
  const { loaded } = await openHome(home, env);
  await using resources = new AsyncDisposableStack();
  const { model, maxCost, maxTokens } = flags;
  const wish = { home, env, loaded, model, maxCost, maxTokens, name: benchmark.benchmark };
  const { trial, cost } = await openEval(wish, resources);
  terminal.note(
    `${benchmark.benchmark} (${benchmark.variant}) with ${trial.subject.model}, ${benchmark.planned} items`,
  );
  let path = '';
  const result = await untilStopped(
    () => terminal.note('Stopping. The results so far are saved.'),
    (signal) =>
      runBenchmark(
        benchmark,
        {
          ...{ trial, cost },
          async keep(kept) {
            path = await keepResult(home.eval, kept);
          },
          progress: (item, items) =>
            terminal.note(progressLine(item, items, benchmark.planned, cost.total().money)),
        },
        signal,
      ),
  );
  if (flags.json === true) terminal.printJson(result);
  else for (const line of resultLines(result)) terminal.print(printable(line));
  terminal.note(path);
  if (result.status === 'partial') {
    const stopped = result.because === 'stopped';
    throw new CommandFailure(
      stopped ? EXIT.interrupted : EXIT.failure,
      `partial: ${result.because}`,
    );
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
  for (const name of unread) terminal.note(`cannot read ${name}: not a result of this version`);
  if (results.length === 0) {
    throw new CommandFailure(
      EXIT.notFound,
      `no results in ${terminal.home.eval}. Start with: nanobot eval hanoi`,
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

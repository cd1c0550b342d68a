// Runs one benchmark from the command line: what is said while it runs, what is printed at the end, and
// the report over all results.

import { CommandFailure, EXIT } from '../../cli/exit-codes.ts';
import type { Terminal } from '../../cli/terminal.ts';
import { printable } from '../../cli/terminal.ts';
import type { Benchmark } from './eval.ts';
import type { EvalItem } from './rules/result.ts';

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
  const { runBenchmark } = await import('./run-benchmark.ts');
  const { keepResult } = await import('./results.ts');
  const { resultLines } = await import('./report-text.ts');
  const { untilStopped } = await import('../../cli/stop-signals.ts');
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
  const { readResults } = await import('./results.ts');
  const { comparisonLines } = await import('./report-text.ts');
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

// One turn of the whole agent as an item of a benchmark; what the grade is, the benchmark says.

import { SpendingRefusedError } from '../agent/spending.ts';
import { ProviderError } from '../core/errors.ts';
import type { Trial, TurnReport } from './eval.ts';

/** @throws ProviderError where the turn failed, SpendingRefusedError, the signal's reason */
export async function askAgent(
  trial: Trial,
  conversation: string,
  question: string,
  signal: AbortSignal,
) {
  const bench = await trial.workbench();
  const report = await bench.turn(conversation, question, signal);
  if (signal.aborted) throw signal.reason;
  if (report.refusal !== undefined) throw new SpendingRefusedError({ text: report.refusal });
  const { model } = trial.subject;
  if (report.outcome !== 'answered') {
    const provider = model.split('/', 1).join();
    const failure = { kind: 'malformed' } as const;
    throw new ProviderError(report.answer, { failure, provider, model });
  }
  return { report, got: report.answer, ms: report.ms, counts: countsOf(report) };
}

const countsOf = (report: TurnReport) => ({
  'model calls': report.modelCalls,
  'tool calls': report.toolCalls,
  'failed tool calls': report.failedToolCalls,
  tokens: report.tokens,
});

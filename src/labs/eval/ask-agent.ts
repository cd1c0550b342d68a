// One turn of the whole agent as an item of a benchmark; what the grade is, the benchmark says.

import { SpendingRefusedError } from '../../agent/spending.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import { shortened } from '../../lib/text/cut.ts';
import type { Trial, TurnReport } from './eval.ts';
import type { EvalItem } from './rules/result.ts';

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

// One question of a benchmark: what the model's service fails at is an item of its own kind, and the
// rest goes on. A stop and an empty purse end the whole.

type Named = Pick<EvalItem, 'id' | 'group' | 'wanted'>;

const MAX_SHOWN_CHARS = 600;

/** @throws SpendingRefusedError, the signal's reason */
export async function attempt(
  named: Named,
  signal: AbortSignal,
  work: () => Promise<Omit<EvalItem, keyof Named>>,
): Promise<EvalItem> {
  try {
    const made = await work();
    return { ...named, ...made, got: shown(made.got) };
  } catch (error) {
    if (signal.aborted || !(error instanceof ProviderError)) throw error;
    const got = `${error.failure.kind}: ${shown(error.message)}`;
    return { ...named, state: 'error', got, ms: 0, counts: {} };
  }
}

export function skipped(named: Named, why: string): EvalItem {
  return { ...named, state: 'skipped', got: why, ms: 0, counts: {} };
}

function shown(text: string): string {
  const flat = text.replace(/\s+/g, ' ').trim();
  return shortened(flat, MAX_SHOWN_CHARS, ' [...]');
}

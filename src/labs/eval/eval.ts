// CONTRACT of a benchmark (questions, subject, graded results), and asking the agent or a model for one
// item of it. Independent of configuration, home and channels.

import { SpendingRefusedError } from '../../agent/spending.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import { shortened } from '../../lib/text/cut.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ModelRequest } from '../../providers/provider.ts';
import type { EvalItem, EvalPlot, EvalResult } from './rules/result.ts';

export type Question = {
  readonly system: string;
  /** Turn by turn; the last is what is asked. */
  readonly said: readonly { readonly role: 'user' | 'assistant'; readonly text: string }[];
  readonly temperature: NonNullable<ModelRequest['temperature']>;
};

export type Reply = {
  readonly text: string;
  /** The model ran out of room. */
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

export type TurnReport = {
  readonly outcome: 'answered' | 'stopped' | 'failed';
  readonly answer: string;
  readonly modelCalls: number;
  readonly toolCalls: number;
  readonly failedToolCalls: number;
  readonly tokens: number;
  readonly ms: number;
  /** No more money: why. */
  readonly refusal?: string;
};

/** The whole agent with its tools, in a workspace that is thrown away. */
export interface Workbench {
  write(files: Readonly<Record<string, string>>): Promise<void>;
  /** Removes what lies below the folder. */
  clear(folder: string): Promise<void>;
  /** What lies below the folder, by path below the workspace. */
  read(folder: string): Promise<ReadonlyMap<string, string>>;
  /** One turn of a conversation; those of the same name follow each other. */
  turn(conversation: string, text: string, signal: AbortSignal): Promise<TurnReport>;
}

export type Trial = {
  readonly subject: Subject;
  readonly clock: Clock;
  /** Made when it is first asked for. */
  workbench(): Promise<Workbench>;
};

export type Summary = {
  readonly figures: Readonly<Record<string, number>>;
  readonly plots: readonly EvalPlot[];
};

export type Benchmark = Pick<EvalResult, 'benchmark' | 'variant' | 'seed' | 'options'> & {
  /** How many items there will be. */
  readonly planned: number;
  /** What guessing gives. */
  readonly chance?: number;
  /** An item for each answer. @throws as `ask` */
  run(trial: Trial, signal: AbortSignal): AsyncGenerator<EvalItem, void, void>;
  summary(items: readonly EvalItem[]): Summary;
};

// One turn of the whole agent as an item of a benchmark; what the grade is, the benchmark says.

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

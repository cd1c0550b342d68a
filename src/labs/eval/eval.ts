// CONTRACT of a benchmark (tasks, subject, graded results), and asking the agent for the answer to one task. Independent of configuration, home and channels.

import { SpendingRefusedError } from '../../agent/spending.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
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
  readonly ms: number;
  /** Calls of models and tools, tokens, by name. */
  readonly counts: EvalItem['counts'];
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

/** The answer to a task, graded. */
export type Graded = Omit<EvalItem, 'id' | 'group' | 'wanted'>;

export type EvalTask = Pick<EvalItem, 'id' | 'group' | 'wanted'> & {
  /** @throws as `ask` */
  run(trial: Trial, signal: AbortSignal): Promise<Graded>;
};

export type Benchmark = Pick<EvalResult, 'benchmark' | 'variant' | 'seed' | 'options'> & {
  /** How many items there will be. */
  readonly planned: number;
  /** What guessing gives. */
  readonly chance?: number;
  /** One after the other; a task may depend on how those before it went. */
  tasks(): Iterable<EvalTask>;
  summary(items: readonly EvalItem[]): Summary;
};

/**
 * One turn of the whole agent; the benchmark grades its answer.
 * @throws ProviderError where the turn failed, SpendingRefusedError, the signal's reason
 */
export async function askAgent(
  trial: Trial,
  conversation: string,
  question: string,
  signal: AbortSignal,
): Promise<Omit<Graded, 'state'>> {
  const bench = await trial.workbench();
  const {
    outcome,
    answer: got,
    ms,
    counts,
    refusal,
  } = await bench.turn(conversation, question, signal);
  signal.throwIfAborted();
  if (refusal !== undefined) throw new SpendingRefusedError({ text: refusal });
  if (outcome === 'answered') return { got, ms, counts };
  const { model } = trial.subject;
  const provider = model.split('/', 1).join();
  throw new ProviderError(got, { failure: { kind: 'malformed' }, provider, model });
}
